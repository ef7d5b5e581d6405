#include "tests/nvtx/recorder.h"

#include <mutex>
#include <vector>

#define NVTX_NO_IMPL
#include "nvtx3/nvToolsExtMem.h"

namespace {

using thimble::NvtxCall;

std::mutex mutex;
std::vector<NvtxCall>& Calls() {
  static auto* const calls = new std::vector<NvtxCall>;
  return *calls;
}

void Record(const NvtxCall& call) {
  const std::lock_guard<std::mutex> lock(mutex);
  Calls().push_back(call);
}

template <typename T>
std::uint64_t Number(T* pointer) {
  return reinterpret_cast<std::uint64_t>(pointer);
}

// Descriptions that a tool would refuse are not recorded.
nvtxMemHeapHandle_t HeapRegister(nvtxDomainHandle_t, nvtxMemHeapDesc_t const* heap) {
  const auto* range = static_cast<nvtxMemVirtualRangeDesc_t const*>(heap->typeSpecificDesc);
  if (heap->extCompatID != NVTX_EXT_COMPATID_MEM || heap->structSize != sizeof(*heap) ||
      heap->usage != NVTX_MEM_HEAP_USAGE_TYPE_SUB_ALLOCATOR ||
      heap->type != NVTX_MEM_TYPE_VIRTUAL_ADDRESS || heap->typeSpecificDescSize != sizeof(*range)) {
    return nullptr;
  }
  Record({NvtxCall::kHeap, Number(range->ptr), range->size, 0});
  return reinterpret_cast<nvtxMemHeapHandle_t>(Number(range->ptr));
}

void HeapUnregister(nvtxDomainHandle_t, nvtxMemHeapHandle_t heap) {
  Record({NvtxCall::kHeapGone, Number(heap), 0, 0});
}

void RegionsRegister(nvtxDomainHandle_t, nvtxMemRegionsRegisterBatch_t const* batch) {
  const auto* ranges = static_cast<nvtxMemVirtualRangeDesc_t const*>(batch->regionDescElements);
  if (batch->extCompatID != NVTX_EXT_COMPATID_MEM || batch->structSize != sizeof(*batch) ||
      batch->regionType != NVTX_MEM_TYPE_VIRTUAL_ADDRESS ||
      batch->regionDescElementSize != sizeof(*ranges)) {
    return;
  }
  for (std::size_t i = 0; i < batch->regionCount; ++i) {
    Record({NvtxCall::kRegion, Number(ranges[i].ptr), ranges[i].size, Number(batch->heap)});
  }
}

void RegionsUnregister(nvtxDomainHandle_t, nvtxMemRegionsUnregisterBatch_t const* batch) {
  if (batch->extCompatID != NVTX_EXT_COMPATID_MEM || batch->structSize != sizeof(*batch) ||
      batch->refType != NVTX_MEM_REGION_REF_TYPE_POINTER ||
      batch->refElementSize != sizeof(nvtxMemRegionRef_t)) {
    return;
  }
  for (std::size_t i = 0; i < batch->refCount; ++i) {
    Record({NvtxCall::kRegionGone, Number(batch->refElements[i].pointer), 0, 0});
  }
}

template <typename Function>
std::intptr_t Slot(Function* function) {
  return reinterpret_cast<std::intptr_t>(function);
}

}  // namespace

extern "C" std::size_t recorded_count() {
  const std::lock_guard<std::mutex> lock(mutex);
  return Calls().size();
}

extern "C" void recorded_call(std::size_t index, NvtxCall* call) {
  const std::lock_guard<std::mutex> lock(mutex);
  *call = Calls().at(index);
}

// NVTX calls this once for each of its modules. It would be hidden, as the type of its argument is.
extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtxExtension(
    nvtxExtModuleInfo_t* module) {
  if (module->moduleId != NVTX_EXT_MODULEID_MEM) return 0;
  std::intptr_t* slots = module->segments[0].functionSlots;
  slots[NVTX3EXT_CBID_nvtxMemHeapRegister] = Slot(&HeapRegister);
  slots[NVTX3EXT_CBID_nvtxMemHeapUnregister] = Slot(&HeapUnregister);
  slots[NVTX3EXT_CBID_nvtxMemRegionsRegister] = Slot(&RegionsRegister);
  slots[NVTX3EXT_CBID_nvtxMemRegionsUnregister] = Slot(&RegionsUnregister);
  return 1;
}
