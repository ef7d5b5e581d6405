// libcublas.so.12: the state of handles, and what products compute with. Everything else is in
// cublas.calls.
#include "tests/simgpu/libraries/driver.h"
#include "tests/simgpu/libraries/types.h"

namespace {

using Status = int;
constexpr int kTf32Mode = 3;  // CUBLAS_TF32_TENSOR_OP_MATH

struct Handle {
  CUstream stream = nullptr;  // first, see StreamOf()
  int math_mode = 0;
  int pointer_mode = 0;
  int atomics_mode = 0;
};

}  // namespace

SIMGPU_API Status cublasCreate_v2(Handle** handle) {
  *handle = new Handle;
  return 0;
}

SIMGPU_API Status cublasDestroy_v2(Handle* handle) {
  delete handle;
  return 0;
}

#define SIMGPU_REMEMBER(Name, Type, field)                         \
  SIMGPU_API Status cublasSet##Name(Handle* handle, Type value) {  \
    handle->field = value;                                         \
    return 0;                                                      \
  }                                                                \
  SIMGPU_API Status cublasGet##Name(Handle* handle, Type* value) { \
    *value = handle->field;                                        \
    return 0;                                                      \
  }

SIMGPU_REMEMBER(Stream_v2, CUstream, stream)
SIMGPU_REMEMBER(MathMode, int, math_mode)
SIMGPU_REMEMBER(PointerMode_v2, int, pointer_mode)
SIMGPU_REMEMBER(AtomicsMode, int, atomics_mode)

SIMGPU_API Status cublasSetWorkspace_v2(Handle*, void* workspace, size_t) {
  return simgpu_bad_pointer(workspace, "cublasSetWorkspace_v2") ? 13 : 0;
}

// For the generated sources: what a product computes with, by the letter in its name...
extern "C" int simgpu_math_of_letter(const Handle* handle, int letter) {
  switch (letter) {
    case 'D':
    case 'Z':
      return simgpu_fp64;
    case 'H':
      return simgpu_half;
    default:
      return handle->math_mode == kTf32Mode ? simgpu_tf32 : simgpu_fp32;
  }
}

// ... or by the types of its elements and of its arithmetic.
extern "C" int simgpu_math_of_type(const Handle* handle, int type, int compute) {
  const int math = simgpu::MathOf(type, compute);
  return math == simgpu_fp32 ? simgpu_math_of_letter(handle, 'S') : math;
}
