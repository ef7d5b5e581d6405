// cuGetProcAddress: a lookup by name finds the front's functions, too.
#include <cstring>

#include "xla_plugin/driver_front/real_driver.h"
#include "xla_plugin/driver_front/served.h"

namespace thimble::xla {
namespace {

// Which default stream the function takes 0 for.
enum class Default { kNone, kLegacy, kPerThread };

struct Entry {
  const char* symbol;
  int since;  // the first version of CUDA with this signature
  Default stream;
  void* function;
};

template <typename Function>
void* Address(Function* function) {
  return reinterpret_cast<void*>(function);
}

// If two entries fit, the later one is newer.
void* ServedFunction(const char* symbol, int version, std::uint64_t flags) {
  static const Entry entries[] = {
      {"cuMemAlloc", 3020, Default::kNone, Address(cuMemAlloc_v2)},
      {"cuMemFree", 3020, Default::kNone, Address(cuMemFree_v2)},
      {"cuMemGetInfo", 3020, Default::kNone, Address(cuMemGetInfo_v2)},
      {"cuMemGetAddressRange", 3020, Default::kNone, Address(cuMemGetAddressRange_v2)},
      {"cuStreamDestroy", 2000, Default::kNone, Address(cuStreamDestroy_v2)},
      {"cuStreamBeginCapture", 10010, Default::kLegacy, Address(cuStreamBeginCapture_v2)},
      {"cuStreamBeginCapture", 10010, Default::kPerThread, Address(cuStreamBeginCapture_v2_ptsz)},
      {"cuStreamBeginCaptureToGraph", 12030, Default::kLegacy,
       Address(cuStreamBeginCaptureToGraph)},
      {"cuStreamBeginCaptureToGraph", 12030, Default::kPerThread,
       Address(cuStreamBeginCaptureToGraph_ptsz)},
      {"cuPointerGetAttribute", 4000, Default::kNone, Address(cuPointerGetAttribute)},
      {"cuPointerGetAttributes", 7000, Default::kNone, Address(cuPointerGetAttributes)},
      {"cuIpcGetMemHandle", 4010, Default::kNone, Address(cuIpcGetMemHandle)},
      {"cuMemAllocAsync", 11020, Default::kLegacy, Address(cuMemAllocAsync)},
      {"cuMemAllocAsync", 11020, Default::kPerThread, Address(cuMemAllocAsync_ptsz)},
      {"cuMemAllocFromPoolAsync", 11020, Default::kLegacy, Address(cuMemAllocFromPoolAsync)},
      {"cuMemAllocFromPoolAsync", 11020, Default::kPerThread,
       Address(cuMemAllocFromPoolAsync_ptsz)},
      {"cuMemFreeAsync", 11020, Default::kLegacy, Address(cuMemFreeAsync)},
      {"cuMemFreeAsync", 11020, Default::kPerThread, Address(cuMemFreeAsync_ptsz)},
      {"cuMemPoolGetAttribute", 11020, Default::kNone, Address(cuMemPoolGetAttribute)},
      {"cuMemPoolSetAttribute", 11020, Default::kNone, Address(cuMemPoolSetAttribute)},
      {"cuMemPoolSetAccess", 11020, Default::kNone, Address(cuMemPoolSetAccess)},
      {"cuMemPoolTrimTo", 11020, Default::kNone, Address(cuMemPoolTrimTo)},
      {"cuMemPoolDestroy", 11020, Default::kNone, Address(cuMemPoolDestroy)},
      {"cuDeviceSetMemPool", 11020, Default::kNone, Address(cuDeviceSetMemPool)},
      {"cuMemSetMemPool", 13000, Default::kNone, Address(cuMemSetMemPool)},
      {"cuCtxDestroy", 2000, Default::kNone, Address(cuCtxDestroy)},
      {"cuCtxDestroy", 4000, Default::kNone, Address(cuCtxDestroy_v2)},
      {"cuCtxDetach", 2000, Default::kNone, Address(cuCtxDetach)},
      {"cuGreenCtxDestroy", 12040, Default::kNone, Address(cuGreenCtxDestroy)},
      {"cuDevicePrimaryCtxRelease", 7000, Default::kNone, Address(cuDevicePrimaryCtxRelease)},
      {"cuDevicePrimaryCtxRelease", 11000, Default::kNone, Address(cuDevicePrimaryCtxRelease_v2)},
      {"cuDevicePrimaryCtxReset", 7000, Default::kNone, Address(cuDevicePrimaryCtxReset)},
      {"cuDevicePrimaryCtxReset", 11000, Default::kNone, Address(cuDevicePrimaryCtxReset_v2)},
      {"cuGetProcAddress", 11030, Default::kNone, Address(cuGetProcAddress)},
      {"cuGetProcAddress", 12000, Default::kNone, Address(cuGetProcAddress_v2)},
  };
  const Default wanted =
      (flags & kPerThreadDefaultStream) != 0 ? Default::kPerThread : Default::kLegacy;
  void* found = nullptr;
  for (const Entry& entry : entries) {
    if (std::strcmp(entry.symbol, symbol) == 0 && version >= entry.since &&
        (entry.stream == Default::kNone || entry.stream == wanted)) {
      found = entry.function;
    }
  }
  return found;
}

// The driver decides whether the function exists.
void Replace(const char* symbol, void** function, int version, std::uint64_t flags) {
  if (symbol == nullptr || function == nullptr || *function == nullptr) return;
  if (void* const ours = ServedFunction(symbol, version, flags)) *function = ours;
}

}  // namespace

CUresult cuGetProcAddress(const char* symbol, void** function, int version, std::uint64_t flags) {
  const CUresult result = Real().cuGetProcAddress(symbol, function, version, flags);
  if (result == kSuccess) Replace(symbol, function, version, flags);
  return result;
}

CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version, std::uint64_t flags,
                             int* status) {
  const CUresult result = Real().cuGetProcAddress_v2(symbol, function, version, flags, status);
  if (result == kSuccess) Replace(symbol, function, version, flags);
  return result;
}

}  // namespace thimble::xla
