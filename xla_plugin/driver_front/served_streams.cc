// Streams that end: the arenas must not ask for them any more, and the next stream may get the
// same handle.
#include "xla_plugin/driver_front/front.h"
#include "xla_plugin/driver_front/real_driver.h"
#include "xla_plugin/driver_front/served.h"

namespace thimble::xla {

CUresult cuStreamDestroy_v2(CUstream stream) {
  return Serve([&] {
    const Front& front = Front::Get();
    if (front.on() && stream != nullptr) {
      for (const auto& device : front.devices()) device->ForgetStream(stream);
    }
    return Real().cuStreamDestroy_v2(stream);
  });
}

// The same function, under the name it had before CUDA 4.
CUresult cuStreamDestroy(CUstream stream) { return cuStreamDestroy_v2(stream); }

}  // namespace thimble::xla
