// TensorFlow's allocator interface over one arena, in BFC's place.
//
// Streams: TensorFlow frees a block when the last op that uses it was submitted to the compute
// stream, so every block belongs to that one stream. Only a request with freed_by_func wants
// memory that no kernel uses any more, whatever the stream: it is made on another stream, and the
// arena then waits for events of the compute stream, which are exact where BFC's counts are not.
// That is why SetSafeFrontier() has nothing to tell this allocator.
//
// Statistics that TensorFlow resets (ClearStats) are counted here; those about memory taken from
// the driver come from the arena. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "allocator/thimble.h"
#include "tf_plugin/block_table.h"
#include "tf_plugin/free_signal.h"
#include "xla/tsl/framework/allocator.h"

namespace thimble::tf {

class TfAllocator final : public tsl::Allocator {
 public:
  struct Options {
    std::string name;
    tsl::AllocatorMemoryType memory_type = tsl::AllocatorMemoryType::kDevice;
    absl::Duration retry = absl::Seconds(10);  // for requests that may be retried
    bool timestamped = false;                  // heed freed_by_func
  };

  // `arena` outlives the allocator.
  TfAllocator(thimble_arena* arena, const Options& options);

  // TensorFlow ends the message of an out-of-memory exception with this name, and offers no other
  // way to add to that message. So the first call after a failed request of this thread appends the
  // report: it consumes the report by TakeReport(), and later calls return the name alone.
  std::string Name() override;
  void* AllocateRaw(std::size_t alignment, std::size_t bytes) override;
  void* AllocateRaw(std::size_t alignment, std::size_t bytes,
                    const tsl::AllocationAttributes& attributes) override;
  void DeallocateRaw(void* block) override;

  bool TracksAllocationSizes() const override { return true; }
  std::size_t RequestedSize(const void* block) const override;
  std::size_t AllocatedSize(const void* block) const override;
  std::int64_t AllocationId(const void* block) const override;

  std::optional<tsl::AllocatorStats> GetStats() override;
  bool ClearStats() override;

  // How TensorFlow uses its blocks, as its devices announce it.
  BlockTable& blocks() { return blocks_; }

  // Reports that the arena had no room for all tensors of `op` at once.
  void ReportNoRoomFor(absl::string_view op) const;

  void SetStreamAndPreallocateMemory(void* stream) override;
  tsl::AllocatorMemoryType GetMemoryType() const override { return options_.memory_type; }

 private:
  // The core rounds requests up to multiples of this.
  static constexpr std::size_t kUnit = 256;
  static std::size_t RoundUp(std::size_t bytes) { return (bytes + kUnit - 1) / kUnit * kUnit; }

  // Hands over the report of this thread's last failed request, once; "" if there is none.
  std::string TakeReport();
  std::uint64_t KeyOf(absl::string_view op) const;
  void Count(std::size_t allocated);
  // `again`: a request of at most this size failed before, and nothing was freed since.
  void ReportOom(std::size_t bytes, bool again) const;
  void ReportOptional(std::size_t bytes) const;

  thimble_arena* const arena_;
  const Options options_;
  const std::uint64_t limit_;
  std::atomic<std::uint64_t> stream_{0};
  BlockTable blocks_;
  FreeSignal freed_;
  // Size of a request that waited in vain since the last free, or 0: any request as large would
  // wait in vain too. Many requests follow one that failed, and each would wait as long.
  std::atomic<std::size_t> waited_in_vain_{0};

  std::atomic<std::int64_t> next_id_{1};
  std::atomic<std::int64_t> allocations_{0};  // since ClearStats()
  std::atomic<std::int64_t> in_use_{0};
  std::atomic<std::int64_t> peak_in_use_{0};
  std::atomic<std::int64_t> largest_{0};
};

}  // namespace thimble::tf
