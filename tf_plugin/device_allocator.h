// The allocator of a TensorFlow device: Thimble's or BFC, wrapped to handle what neither of them
// can know.
//
//   - XLA cannot free blocks that were lent to it (lent_blocks.h).
//   - A forked child cannot use the arena. On a GPU its requests are refused, with the reason. On
//     the CPU it gets memory from TensorFlow's own CPU allocator, and blocks of its parent that it
//     frees stay until it ends.
//   - Some CPU kernels continue after a refused request, and crash. Within an Overdraft,
//     TensorFlow's own CPU allocator serves such a request beyond the limit, and the op fails when
//     its kernel has returned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "allocator/thimble.h"
#include "tf_plugin/lent_blocks.h"
#include "xla/tsl/framework/allocator.h"

namespace thimble::tf {

// While it lives, no DeviceAllocator of host memory refuses a request of this thread.
class Overdraft {
 public:
  Overdraft();
  ~Overdraft();
  Overdraft(const Overdraft&) = delete;
  Overdraft& operator=(const Overdraft&) = delete;

  // kResourceExhausted, with the explanation of the first request that should have been refused.
  const absl::Status& status() const { return status_; }

 private:
  friend class DeviceAllocator;
  Overdraft* const outer_;
  absl::Status status_;
};

class DeviceAllocator final : public tsl::AllocatorWrapper {
 public:
  // `allocator` gets its memory from `arena`, which outlives it.
  DeviceAllocator(thimble_arena* arena, std::unique_ptr<tsl::Allocator> allocator);

  void* AllocateRaw(std::size_t alignment, std::size_t bytes) override;
  void* AllocateRaw(std::size_t alignment, std::size_t bytes,
                    const tsl::AllocationAttributes& attributes) override;
  void DeallocateRaw(void* block) override;
  using AllocatorWrapper::DeallocateRaw;

  std::size_t RequestedSize(const void* block) const override;
  std::size_t AllocatedSize(const void* block) const override;
  std::size_t AllocatedSizeSlow(const void* block) const override;
  std::int64_t AllocationId(const void* block) const override;

  std::optional<tsl::AllocatorStats> GetStats() override { return wrapped()->GetStats(); }
  bool ClearStats() override { return wrapped()->ClearStats(); }
  void SetSafeFrontier(std::uint64_t count) override { wrapped()->SetSafeFrontier(count); }
  void SetStreamAndPreallocateMemory(void* stream) override {
    wrapped()->SetStreamAndPreallocateMemory(stream);
  }

  LentBlocks& lent() { return lent_; }
  // Frees a block that was lent and has come back.
  void FreeReturned(void* block) { wrapped()->DeallocateRaw(block); }

 private:
  bool IsInChild() const { return thimble_is_in_child(arena_) != 0; }
  // The size of a block that does not come from the arena; nothing if it does.
  std::optional<std::size_t> OutsideSize(const void* block) const;

  thimble_arena* const arena_;
  const std::unique_ptr<tsl::Allocator> owned_;
  const bool on_host_;
  LentBlocks lent_;
};

}  // namespace thimble::tf
