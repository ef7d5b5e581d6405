// The functions of libcuda that Thimble calls. They are looked up at run time, so that one build
// serves machines with and without a GPU; of CUDA only the header is needed to compile.
//
// Private to allocator/driver: nothing else sees cuda.h.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/base/ids.h"
#include "cuda.h"

namespace thimble {

// Symbols as libcuda exports them, version suffix included: what cuda.h calls cuMemGetInfo is
// cuMemGetInfo_v2 in the library, and cuMemGetInfo there is a 32-bit relic.
#define THIMBLE_CUDA_SYMBOLS(X)     \
  X(cuInit)                         \
  X(cuGetErrorName)                 \
  X(cuDeviceGetCount)               \
  X(cuDeviceGet)                    \
  X(cuDeviceGetName)                \
  X(cuDeviceGetAttribute)           \
  X(cuDeviceTotalMem_v2)            \
  X(cuDeviceCanAccessPeer)          \
  X(cuDevicePrimaryCtxRetain)       \
  X(cuDevicePrimaryCtxRelease_v2)   \
  X(cuCtxPushCurrent_v2)            \
  X(cuCtxPopCurrent_v2)             \
  X(cuMemGetAllocationGranularity)  \
  X(cuMemGetInfo_v2)                \
  X(cuMemAddressReserve)            \
  X(cuMemAddressFree)               \
  X(cuMemCreate)                    \
  X(cuMemRelease)                   \
  X(cuMemMap)                       \
  X(cuMemUnmap)                     \
  X(cuMemSetAccess)                 \
  X(cuMemExportToShareableHandle)   \
  X(cuMemImportFromShareableHandle) \
  X(cuMemcpyHtoDAsync_v2)           \
  X(cuMemcpyDtoHAsync_v2)           \
  X(cuMemHostRegister_v2)           \
  X(cuMemHostUnregister)            \
  X(cuStreamCreate)                 \
  X(cuStreamSynchronize)            \
  X(cuStreamDestroy_v2)             \
  X(cuEventCreate)                  \
  X(cuEventDestroy_v2)              \
  X(cuEventRecord)                  \
  X(cuEventQuery)                   \
  X(cuEventSynchronize)

inline CUdeviceptr ToCuda(Address address) { return address.value(); }

struct CudaApi {
  // kUnavailable if the library cannot be opened, or lacks a symbol; the message says which. The
  // library stays open until the process ends: it has threads and exit handlers of its own.
  static absl::StatusOr<std::unique_ptr<const CudaApi>> Load(const std::string& library);

  // "cuMemCreate: CUDA_ERROR_OUT_OF_MEMORY" with the code that driver.h promises.
  absl::Status ToStatus(CUresult result, const char* call) const;

#define THIMBLE_CUDA_DECLARE(symbol) decltype(&::symbol) symbol = nullptr;
  THIMBLE_CUDA_SYMBOLS(THIMBLE_CUDA_DECLARE)
#undef THIMBLE_CUDA_DECLARE
};

// Makes `context` current on this thread and restores what the caller had: frameworks keep their
// own context current and must not notice us. Nothing may be called if `result` is not success.
class CurrentContext {
 public:
  CurrentContext(const CudaApi& api, CUcontext context)
      : api_(api), result_(api.cuCtxPushCurrent_v2(context)) {}
  ~CurrentContext() {
    CUcontext ours = nullptr;
    if (result_ == CUDA_SUCCESS) api_.cuCtxPopCurrent_v2(&ours);
  }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

  CUresult result() const { return result_; }
  absl::Status status() const { return api_.ToStatus(result_, "cuCtxPushCurrent"); }

 private:
  const CudaApi& api_;
  const CUresult result_;
};

}  // namespace thimble
