// The tool that NVTX loads if NVTX_INJECTION64_PATH names this library, as the launcher does:
// allocators report their blocks to it.
#include "tests/simgpu/driver/simulator.h"

#if __has_include("nvtx3/nvToolsExtMem.h")

#define NVTX_NO_IMPL
#include "nvtx3/nvToolsExtMem.h"

using simgpu::Address;
using simgpu::Simulator;

namespace {

nvtxMemHeapHandle_t RegisterHeap(nvtxDomainHandle_t, nvtxMemHeapDesc_t const* heap) {
  const auto* range = static_cast<nvtxMemVirtualRangeDesc_t const*>(heap->typeSpecificDesc);
  return static_cast<nvtxMemHeapHandle_t>(const_cast<void*>(range->ptr));
}

void UnregisterHeap(nvtxDomainHandle_t, nvtxMemHeapHandle_t) {}

void RegisterRegions(nvtxDomainHandle_t, nvtxMemRegionsRegisterBatch_t const* batch) {
  if (batch->regionType != NVTX_MEM_TYPE_VIRTUAL_ADDRESS) return;
  const auto* const regions =
      static_cast<nvtxMemVirtualRangeDesc_t const*>(batch->regionDescElements);
  for (std::size_t i = 0; i < batch->regionCount; ++i) {
    Simulator::Get().races.Begin(reinterpret_cast<Address>(regions[i].ptr), regions[i].size);
  }
}

void UnregisterRegions(nvtxDomainHandle_t, nvtxMemRegionsUnregisterBatch_t const* batch) {
  if (batch->refType != NVTX_MEM_REGION_REF_TYPE_POINTER) return;
  for (std::size_t i = 0; i < batch->refCount; ++i) {
    Simulator::Get().races.End(reinterpret_cast<Address>(batch->refElements[i].pointer));
  }
}

template <typename Function>
std::intptr_t Slot(Function* function) {
  return reinterpret_cast<std::intptr_t>(function);
}

}  // namespace

// NVTX calls this for each of its modules.
extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtxExtension(
    nvtxExtModuleInfo_t* module) {
  if (module->moduleId != NVTX_EXT_MODULEID_MEM) return 0;
  std::intptr_t* const slots = module->segments[0].functionSlots;
  slots[NVTX3EXT_CBID_nvtxMemHeapRegister] = Slot(&RegisterHeap);
  slots[NVTX3EXT_CBID_nvtxMemHeapUnregister] = Slot(&UnregisterHeap);
  slots[NVTX3EXT_CBID_nvtxMemRegionsRegister] = Slot(&RegisterRegions);
  slots[NVTX3EXT_CBID_nvtxMemRegionsUnregister] = Slot(&UnregisterRegions);
  return 1;
}

#endif
