#include "allocator/driver/cuda_api.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"

namespace thimble {
namespace {

absl::StatusCode CodeOf(CUresult result) {
  switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY:
      return absl::StatusCode::kResourceExhausted;
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED:
    case CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED:
    case CUDA_ERROR_INVALID_HANDLE:
    case CUDA_ERROR_INVALID_DEVICE:
    case CUDA_ERROR_NOT_MAPPED:
    case CUDA_ERROR_ALREADY_MAPPED:
    case CUDA_ERROR_NOT_PERMITTED:
    case CUDA_ERROR_PEER_ACCESS_UNSUPPORTED:
      return absl::StatusCode::kInvalidArgument;
    case CUDA_ERROR_NOT_SUPPORTED:
      return absl::StatusCode::kUnimplemented;
    // The driver is gone, or the context is lost: no later call can succeed either.
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_NOT_INITIALIZED:
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_INVALID_CONTEXT:  // ours, as callers name none
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
    case CUDA_ERROR_SYSTEM_NOT_READY:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
      return absl::StatusCode::kUnavailable;
    default:
      return absl::StatusCode::kInternal;
  }
}

template <typename Function>
absl::Status Find(void* library, const std::string& path, const char* symbol, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, symbol));
  if (*function != nullptr) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat(path, " has no ", symbol, ": a driver for CUDA 11 or later is needed"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<const CudaApi>> CudaApi::Load(const std::string& library) {
  void* const opened = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) {
    return absl::UnavailableError(absl::StrCat("no CUDA driver: ", dlerror()));
  }
  auto api = std::make_unique<CudaApi>();
  absl::Status status;
#define THIMBLE_CUDA_FIND(symbol) status.Update(Find(opened, library, #symbol, &api->symbol));
  THIMBLE_CUDA_SYMBOLS(THIMBLE_CUDA_FIND)
#undef THIMBLE_CUDA_FIND
  if (!status.ok()) return status;
  return api;
}

absl::Status CudaApi::ToStatus(CUresult result, const char* call) const {
  if (result == CUDA_SUCCESS) return absl::OkStatus();
  const char* name = nullptr;
  if (cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr) name = "unknown error";
  return absl::Status(CodeOf(result),
                      absl::StrCat(call, ": ", name, " (", static_cast<int>(result), ")"));
}

}  // namespace thimble
