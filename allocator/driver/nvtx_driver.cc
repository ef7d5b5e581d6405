#include "allocator/driver/nvtx_driver.h"

#include <iterator>
#include <utility>

#include "absl/status/status.h"
#include "allocator/base/status_macros.h"

#if __has_include("nvtx3/nvToolsExtMem.h")
#define THIMBLE_HAS_NVTX 1
#include "nvtx3/nvToolsExtMem.h"
#else
#define THIMBLE_HAS_NVTX 0
#endif

namespace thimble {

#if THIMBLE_HAS_NVTX

namespace {

const void* Pointer(Address address) { return reinterpret_cast<const void*>(address); }

nvtxMemHeapHandle_t RegisterHeap(Address address, Bytes bytes) {
  const nvtxMemVirtualRangeDesc_t range = {bytes, Pointer(address)};
  nvtxMemHeapDesc_t heap = {};
  heap.extCompatID = NVTX_EXT_COMPATID_MEM;
  heap.structSize = sizeof(heap);
  heap.usage = NVTX_MEM_HEAP_USAGE_TYPE_SUB_ALLOCATOR;
  heap.type = NVTX_MEM_TYPE_VIRTUAL_ADDRESS;
  heap.typeSpecificDescSize = sizeof(range);
  heap.typeSpecificDesc = &range;
  heap.messageType = NVTX_MESSAGE_TYPE_ASCII;
  heap.message.ascii = "thimble";
  return nvtxMemHeapRegister(/*domain=*/nullptr, &heap);
}

void RegisterRegion(nvtxMemHeapHandle_t heap, Address address, Bytes bytes) {
  const nvtxMemVirtualRangeDesc_t range = {bytes, Pointer(address)};
  nvtxMemRegionsRegisterBatch_t batch = {};
  batch.extCompatID = NVTX_EXT_COMPATID_MEM;
  batch.structSize = sizeof(batch);
  batch.regionType = NVTX_MEM_TYPE_VIRTUAL_ADDRESS;
  batch.heap = heap;
  batch.regionCount = 1;
  batch.regionDescElementSize = sizeof(range);
  batch.regionDescElements = &range;
  nvtxMemRegionsRegister(/*domain=*/nullptr, &batch);
}

void UnregisterRegion(Address address) {
  nvtxMemRegionRef_t region = {};
  region.pointer = Pointer(address);
  nvtxMemRegionsUnregisterBatch_t batch = {};
  batch.extCompatID = NVTX_EXT_COMPATID_MEM;
  batch.structSize = sizeof(batch);
  batch.refType = NVTX_MEM_REGION_REF_TYPE_POINTER;
  batch.refCount = 1;
  batch.refElementSize = sizeof(region);
  batch.refElements = &region;
  nvtxMemRegionsUnregister(/*domain=*/nullptr, &batch);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Driver>> NvtxDriver::Wrap(std::unique_ptr<Driver> base) {
  return std::unique_ptr<Driver>(new NvtxDriver(std::move(base)));
}

absl::StatusOr<Address> NvtxDriver::Reserve(Bytes bytes, Bytes alignment) {
  THIMBLE_ASSIGN_OR_RETURN(const Address address, base().Reserve(bytes, alignment));
  const Heap heap = RegisterHeap(address, bytes);
  MutexLock lock(&mutex_);
  heaps_[address] = heap;
  return address;
}

// Other threads may get the addresses as soon as they are released: nothing of them is left before.
absl::Status NvtxDriver::Release(Address address, Bytes bytes) {
  Heap heap = nullptr;
  {
    MutexLock lock(&mutex_);
    const auto found = heaps_.find(address);
    if (found != heaps_.end()) {
      heap = found->second;
      heaps_.erase(found);
      nvtxMemHeapUnregister(/*domain=*/nullptr, heap);
    }
  }
  absl::Status status = base().Release(address, bytes);
  if (status.ok() || heap == nullptr) return status;
  heap = RegisterHeap(address, bytes);  // it is still there
  MutexLock lock(&mutex_);
  heaps_[address] = heap;
  return status;
}

NvtxDriver::Heap NvtxDriver::HeapOf(Address address) {
  MutexLock lock(&mutex_);
  const auto after = heaps_.upper_bound(address);
  return after == heaps_.begin() ? nullptr : std::prev(after)->second;
}

void NvtxDriver::Regions::Append(const Event& event) {
  if (event.kind == EventKind::kAllocate) {
    RegisterRegion(driver_->HeapOf(event.address), event.address, event.bytes);
  } else if (event.kind == EventKind::kFree) {
    UnregisterRegion(event.address);
  }
}

#else

absl::StatusOr<std::unique_ptr<Driver>> NvtxDriver::Wrap(std::unique_ptr<Driver>) {
  return absl::UnimplementedError(
      "nvtx:on needs a Thimble that was built with NVTX's headers, which CUDA's toolkit has: "
      "leave it out");
}
absl::StatusOr<Address> NvtxDriver::Reserve(Bytes bytes, Bytes alignment) {
  return base().Reserve(bytes, alignment);
}
absl::Status NvtxDriver::Release(Address address, Bytes bytes) {
  return base().Release(address, bytes);
}
NvtxDriver::Heap NvtxDriver::HeapOf(Address) { return nullptr; }
void NvtxDriver::Regions::Append(const Event&) {}

#endif

}  // namespace thimble
