// The driver that the front stands in front of.
//
// It is opened by path: by name the loader would find the front, which has the driver's name.
#pragma once

#include <string>

#include "xla_plugin/driver_front/cuda_abi.h"

namespace thimble::xla {

// X(name, arguments): the functions that the front itself calls. All return CUresult.
#define THIMBLE_REAL_FUNCTIONS(X)                                                                  \
  X(cuInit, (unsigned flags))                                                                      \
  X(cuDeviceGetCount, (int* count))                                                                \
  X(cuDeviceGet, (CUdevice * device, int ordinal))                                                 \
  X(cuDeviceGetAttribute, (int* value, int attribute, CUdevice device))                            \
  X(cuDeviceTotalMem_v2, (std::size_t * bytes, CUdevice device))                                   \
  X(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device))                              \
  X(cuDeviceGetDefaultMemPool, (CUmemoryPool * pool, CUdevice device))                             \
  X(cuDeviceGetMemPool, (CUmemoryPool * pool, CUdevice device))                                    \
  X(cuDeviceSetMemPool, (CUdevice device, CUmemoryPool pool))                                      \
  X(cuDevicePrimaryCtxRelease_v2, (CUdevice device))                                               \
  X(cuDevicePrimaryCtxReset_v2, (CUdevice device))                                                 \
  X(cuCtxDestroy, (CUcontext context))                                                             \
  X(cuCtxDestroy_v2, (CUcontext context))                                                          \
  X(cuCtxDetach, (CUcontext context))                                                              \
  X(cuGreenCtxDestroy, (CUgreenCtx context))                                                       \
  X(cuCtxGetCurrent, (CUcontext * context))                                                        \
  X(cuCtxGetDevice, (CUdevice * device))                                                           \
  X(cuCtxPushCurrent_v2, (CUcontext context))                                                      \
  X(cuCtxPopCurrent_v2, (CUcontext * context))                                                     \
  X(cuCtxSynchronize, ())                                                                          \
  X(cuStreamCreate, (CUstream * stream, unsigned flags))                                           \
  X(cuStreamSynchronize, (CUstream stream))                                                        \
  X(cuStreamGetCtx, (CUstream stream, CUcontext * context))                                        \
  X(cuStreamIsCapturing, (CUstream stream, int* status))                                           \
  X(cuStreamDestroy_v2, (CUstream stream))                                                         \
  X(cuStreamBeginCapture_v2, (CUstream stream, int mode))                                          \
  X(cuStreamBeginCapture_v2_ptsz, (CUstream stream, int mode))                                     \
  X(cuStreamBeginCaptureToGraph, (CUstream stream, void* graph, const void* dependencies,          \
                                  const void* edges, std::size_t count, int mode))                 \
  X(cuStreamBeginCaptureToGraph_ptsz, (CUstream stream, void* graph, const void* dependencies,     \
                                       const void* edges, std::size_t count, int mode))            \
  X(cuMemAlloc_v2, (CUdeviceptr * pointer, std::size_t bytes))                                     \
  X(cuMemFree_v2, (CUdeviceptr pointer))                                                           \
  X(cuMemGetInfo_v2, (std::size_t * free_bytes, std::size_t * total_bytes))                        \
  X(cuMemGetAddressRange_v2, (CUdeviceptr * base, std::size_t * bytes, CUdeviceptr inside))        \
  X(cuMemAllocAsync, (CUdeviceptr * pointer, std::size_t bytes, CUstream stream))                  \
  X(cuMemAllocFromPoolAsync,                                                                       \
    (CUdeviceptr * pointer, std::size_t bytes, CUmemoryPool pool, CUstream stream))                \
  X(cuMemFreeAsync, (CUdeviceptr pointer, CUstream stream))                                        \
  X(cuMemPoolGetAttribute, (CUmemoryPool pool, int attribute, void* value))                        \
  X(cuMemPoolSetAttribute, (CUmemoryPool pool, int attribute, void* value))                        \
  X(cuMemPoolSetAccess, (CUmemoryPool pool, const CUmemAccessDesc* map, std::size_t count))        \
  X(cuMemPoolTrimTo, (CUmemoryPool pool, std::size_t keep_bytes))                                  \
  X(cuMemPoolDestroy, (CUmemoryPool pool))                                                         \
  X(cuMemSetMemPool, (CUmemLocation * location, int type, CUmemoryPool pool))                      \
  X(cuPointerGetAttribute, (void* value, int attribute, CUdeviceptr pointer))                      \
  X(cuPointerGetAttributes, (unsigned count, int* attributes, void** values, CUdeviceptr pointer)) \
  X(cuIpcGetMemHandle, (CUipcMemHandle * handle, CUdeviceptr pointer))                             \
  X(cuGetProcAddress, (const char* symbol, void** function, int version, std::uint64_t flags))     \
  X(cuGetProcAddress_v2,                                                                           \
    (const char* symbol, void** function, int version, std::uint64_t flags, int* status))

struct RealDriver {
#define THIMBLE_DECLARE(name, arguments) CUresult(*name) arguments = nullptr;
  THIMBLE_REAL_FUNCTIONS(THIMBLE_DECLARE)
#undef THIMBLE_DECLARE
};

// Until OpenRealDriver() succeeds, every function of it returns CUDA_ERROR_NOT_INITIALIZED.
const RealDriver& Real();

// Returns "" or what is wrong. To be called once, before any other thread can know the front.
// Functions that the library lacks return CUDA_ERROR_NOT_SUPPORTED, as in a driver that is too old.
std::string OpenRealDriver(const std::string& path);

}  // namespace thimble::xla
