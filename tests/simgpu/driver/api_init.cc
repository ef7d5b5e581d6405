// Version, errors, and finding functions by name.
#include <dlfcn.h>

#include <cstring>
#include <string>

#include "tests/simgpu/driver/errors.h"
#include "tests/simgpu/driver/simulator.h"

#undef cuGetProcAddress

using simgpu::Call;
using simgpu::Simulator;

namespace {

// Of a driver that serves programs built with any CUDA 12.
constexpr int kVersion = 12090;

// Functions whose arguments changed in CUDA 12: callers get the newer one only if they ask for that
// version. For all others, callers get the newest.
struct Change {
  const char* name;
  int suffix;
  int since;
};
constexpr Change kChanges[] = {
    {"cuGetProcAddress", 2, 12000},
    {"cuGraphExecUpdate", 2, 12000},
    {"cuGraphAddKernelNode", 2, 12000},
    {"cuGraphKernelNodeGetParams", 2, 12000},
    {"cuGraphKernelNodeSetParams", 2, 12000},
    {"cuGraphExecKernelNodeSetParams", 2, 12000},
    {"cuMemAdvise", 2, 12020},
    {"cuMemPrefetchAsync", 2, 12020},
    {"cuGraphAddNode", 2, 12030},
    {"cuGraphGetEdges", 2, 12030},
    {"cuGraphAddDependencies", 2, 12030},
    {"cuGraphRemoveDependencies", 2, 12030},
    {"cuGraphNodeGetDependencies", 2, 12030},
    {"cuGraphNodeGetDependentNodes", 2, 12030},
    {"cuStreamGetCaptureInfo", 3, 12030},
    {"cuStreamUpdateCaptureDependencies", 2, 12030},
    {"cuCtxCreate", 4, 12050},
    {"cuEventElapsedTime", 2, 12080},
};

bool IsMeant(const std::string& name, int suffix, int version) {
  for (const Change& change : kChanges) {
    if (name == change.name && suffix == change.suffix) return version >= change.since;
  }
  return true;
}

void* FindSymbol(const std::string& name, int version) {
  static void* const self = [] {
    Dl_info info;
    dladdr(reinterpret_cast<void*>(&cuInit), &info);
    return dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  }();
  for (int suffix = 4; suffix >= 2; --suffix) {
    void* const symbol = dlsym(self, (name + "_v" + std::to_string(suffix)).c_str());
    if (symbol != nullptr && IsMeant(name, suffix, version)) return symbol;
  }
  return dlsym(self, name.c_str());
}

}  // namespace

extern "C" {

CUresult cuInit(unsigned int flags) {
  Call call("cuInit", {{"flags", flags}}, Call::Needs::kNothing);
  if (!call.ok()) return call.result();
  return call.Return(Simulator::Get().Initialize());
}

CUresult cuDriverGetVersion(int* version) {
  Call call("cuDriverGetVersion", {}, Call::Needs::kNothing);
  if (!call.ok()) return call.result();
  *version = kVersion;
  return call.result();
}

// These three only describe a result, so they are not logged.
CUresult cuGetErrorName(CUresult error, const char** text) {
  *text = simgpu::ErrorName(error);
  return *text == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char** text) { return cuGetErrorName(error, text); }

CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version, cuuint64_t /*flags*/,
                             CUdriverProcAddressQueryResult* status) {
  *function = FindSymbol(symbol, version);
  if (status != nullptr) {
    *status =
        *function != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  return *function != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags) {
  return cuGetProcAddress_v2(symbol, function, version, flags, nullptr);
}

}  // extern "C"
