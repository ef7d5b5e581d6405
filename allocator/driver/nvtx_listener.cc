#include "allocator/driver/nvtx_listener.h"

#include <iterator>
#include <utility>

#include "absl/status/status.h"

#if __has_include("nvtx3/nvToolsExtMem.h")
#define THIMBLE_HAS_NVTX 1
#include "nvtx3/nvToolsExtMem.h"
#else
#define THIMBLE_HAS_NVTX 0
#endif

namespace thimble {

#if THIMBLE_HAS_NVTX

namespace {

nvtxMemHeapHandle_t RegisterHeap(Address address, Bytes bytes) {
  const nvtxMemVirtualRangeDesc_t range = {bytes, ToPointer(address)};
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
  const nvtxMemVirtualRangeDesc_t range = {bytes, ToPointer(address)};
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
  region.pointer = ToPointer(address);
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

absl::StatusOr<std::unique_ptr<NvtxListener>> NvtxListener::Create() {
  return std::unique_ptr<NvtxListener>(new NvtxListener);
}

NvtxListener::~NvtxListener() {
  MutexLock lock(&mutex_);
  for (const auto& [address, heap] : heaps_) nvtxMemHeapUnregister(/*domain=*/nullptr, heap);
}

void NvtxListener::AddRange(Address address, Bytes bytes) {
  const Heap heap = RegisterHeap(address, bytes);
  MutexLock lock(&mutex_);
  heaps_[address] = heap;
}

NvtxListener::Heap NvtxListener::HeapOf(Address address) {
  MutexLock lock(&mutex_);
  const auto after = heaps_.upper_bound(address);
  return after == heaps_.begin() ? nullptr : std::prev(after)->second;
}

void NvtxListener::Append(const Event& event) {
  if (event.kind == EventKind::kAllocate) {
    RegisterRegion(HeapOf(Address(event.address)), Address(event.address), event.bytes);
  } else if (event.kind == EventKind::kFree) {
    UnregisterRegion(Address(event.address));
  }
}

#else

absl::StatusOr<std::unique_ptr<NvtxListener>> NvtxListener::Create() {
  return absl::UnimplementedError(
      "nvtx:on needs a Thimble that was built with NVTX's headers, which CUDA's toolkit has: "
      "leave it out");
}
NvtxListener::~NvtxListener() = default;
void NvtxListener::AddRange(Address, Bytes) {}
NvtxListener::Heap NvtxListener::HeapOf(Address) { return nullptr; }
void NvtxListener::Append(const Event&) {}

#endif

}  // namespace thimble
