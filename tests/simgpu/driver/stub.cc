#include "tests/simgpu/driver/stub.h"

#include "tests/simgpu/driver/call.h"

namespace simgpu {

int NotSimulated(const char* name) {
  Call call(name);
  if (call.is_logged()) call.Note("(not simulated)");
  return call.ok() ? call.Return(CUDA_ERROR_NOT_SUPPORTED) : call.result();
}

}  // namespace simgpu
