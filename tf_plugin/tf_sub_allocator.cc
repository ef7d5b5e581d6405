#include "tf_plugin/tf_sub_allocator.h"

#include "absl/log/log.h"

namespace thimble::tf {

TfSubAllocator::TfSubAllocator(thimble_arena* arena, tsl::AllocatorMemoryType memory_type,
                               int index, const std::vector<Visitor>& alloc_visitors,
                               const std::vector<Visitor>& free_visitors)
    : SubAllocator(alloc_visitors, free_visitors),
      arena_(arena),
      memory_type_(memory_type),
      index_(index) {}

void* TfSubAllocator::Alloc(std::size_t alignment, std::size_t bytes, std::size_t* received) {
  void* region = nullptr;
  *received = bytes;
  if (bytes == 0) return nullptr;
  if (thimble_allocate(arena_, bytes, alignment, stream_.load(std::memory_order_relaxed),
                       /*key=*/0, &region) != THIMBLE_OK) {
    return nullptr;
  }
  VisitAlloc(region, index_, bytes);
  return region;
}

void TfSubAllocator::Free(void* region, std::size_t bytes) {
  if (region == nullptr) return;
  VisitFree(region, index_, bytes);
  if (thimble_free(arena_, region, stream_.load(std::memory_order_relaxed)) != THIMBLE_OK) {
    LOG(ERROR) << "Thimble cannot free a region of " << bytes << " bytes at " << region << ": "
               << thimble_last_error();
    return;
  }
  // Release everything that is free. Memory in use cannot go, so zero is safe.
  if (thimble_trim(arena_, /*keep_bytes=*/0, nullptr) != THIMBLE_OK) {
    LOG(WARNING) << "Thimble could not return memory that BFC released: " << thimble_last_error();
  }
}

}  // namespace thimble::tf
