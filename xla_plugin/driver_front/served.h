// The functions of the driver that the front serves itself; served_names.txt lists them too. A call
// that concerns no arena goes to the driver unchanged.
#pragma once

#include <new>

#include "xla_plugin/driver_front/cuda_abi.h"

namespace thimble::xla {

// No exception may reach a caller that expects C.
template <typename Body>
CUresult Serve(Body body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return kOutOfMemory;
  }
}

#pragma GCC visibility push(default)
extern "C" {
CUresult cuMemAlloc_v2(CUdeviceptr* pointer, std::size_t bytes);
CUresult cuMemFree_v2(CUdeviceptr pointer);
CUresult cuMemAllocAsync(CUdeviceptr* pointer, std::size_t bytes, CUstream stream);
CUresult cuMemAllocAsync_ptsz(CUdeviceptr* pointer, std::size_t bytes, CUstream stream);
CUresult cuMemAllocFromPoolAsync(CUdeviceptr* pointer, std::size_t bytes, CUmemoryPool pool,
                                 CUstream stream);
CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* pointer, std::size_t bytes, CUmemoryPool pool,
                                      CUstream stream);
CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream);
CUresult cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream stream);

CUresult cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* total_bytes);
CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr inside);
CUresult cuPointerGetAttribute(void* value, int attribute, CUdeviceptr pointer);
CUresult cuPointerGetAttributes(unsigned count, int* attributes, void** values,
                                CUdeviceptr pointer);
CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr pointer);

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void* value);
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void* value);
CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* map, std::size_t count);
CUresult cuMemPoolTrimTo(CUmemoryPool pool, std::size_t keep_bytes);
CUresult cuMemPoolDestroy(CUmemoryPool pool);
CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool);
CUresult cuMemSetMemPool(CUmemLocation* location, int type, CUmemoryPool pool);

CUresult cuStreamDestroy(CUstream stream);
CUresult cuStreamDestroy_v2(CUstream stream);

CUresult cuStreamBeginCapture_v2(CUstream stream, int mode);
CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, int mode);
CUresult cuStreamBeginCaptureToGraph(CUstream stream, void* graph, const void* dependencies,
                                     const void* edges, std::size_t count, int mode);
CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream stream, void* graph, const void* dependencies,
                                          const void* edges, std::size_t count, int mode);

CUresult cuCtxDestroy(CUcontext context);
CUresult cuCtxDestroy_v2(CUcontext context);
CUresult cuCtxDetach(CUcontext context);
CUresult cuGreenCtxDestroy(CUgreenCtx context);
CUresult cuDevicePrimaryCtxRelease(CUdevice device);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);
CUresult cuDevicePrimaryCtxReset(CUdevice device);
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device);

CUresult cuGetProcAddress(const char* symbol, void** function, int version, std::uint64_t flags);
CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version, std::uint64_t flags,
                             int* status);
}
#pragma GCC visibility pop

}  // namespace thimble::xla
