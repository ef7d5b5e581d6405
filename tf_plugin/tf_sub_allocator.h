// Serves regions to TensorFlow's own BFC allocator (front:bfc) from an arena.
//
// A region is contiguous in addresses; its memory may be in pieces. A region that BFC releases goes
// back to the driver, so BFC can shrink as well as grow. BFC relies on cuMemFree, which waits for
// the device; unmapping does not, so the arena waits for the compute stream instead. Visitors,
// which register memory with a network card, see each region come and go; it never changes in
// between.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "allocator/thimble.h"
#include "xla/tsl/framework/allocator.h"

namespace thimble::tf {

class TfSubAllocator final : public tsl::SubAllocator {
 public:
  // `arena` outlives this. Visitors receive `index`.
  TfSubAllocator(thimble_arena* arena, tsl::AllocatorMemoryType memory_type, int index,
                 const std::vector<Visitor>& alloc_visitors,
                 const std::vector<Visitor>& free_visitors);

  // The stream on which TensorFlow uses the regions.
  void SetStream(std::uint64_t stream) { stream_.store(stream, std::memory_order_relaxed); }

  // Returns null without a message if the region does not fit: BFC then asks for less, or tells the
  // user.
  void* Alloc(std::size_t alignment, std::size_t bytes, std::size_t* received) override;
  void Free(void* region, std::size_t bytes) override;

  // Neighbours in addresses are still two blocks of the arena.
  bool SupportsCoalescing() const override { return false; }
  tsl::AllocatorMemoryType GetMemoryType() const override { return memory_type_; }

 private:
  thimble_arena* const arena_;
  const tsl::AllocatorMemoryType memory_type_;
  const int index_;
  std::atomic<std::uint64_t> stream_{0};
};

}  // namespace thimble::tf
