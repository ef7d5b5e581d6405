// libcublas.so.12: the state of handles. Everything else is in cublas.calls.
#include "tests/simgpu/libraries/driver.h"

namespace {

using Status = int;

struct Handle {
  CUstream stream = nullptr;
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
