// Streams that the arenas must not ask for any more: those that end, because the next stream may
// get the same handle, and those that are captured, because the question would become part of the
// graph.
#include "xla_plugin/driver_front/front.h"
#include "xla_plugin/driver_front/real_driver.h"
#include "xla_plugin/driver_front/served.h"

namespace thimble::xla {
namespace {

// Waits for what was freed on the stream.
void Forget(CUstream stream) {
  const Front& front = Front::Get();
  if (!front.on() || stream == nullptr) return;
  for (const auto& device : front.devices()) device->ForgetStream(stream);
}

}  // namespace

CUresult cuStreamDestroy_v2(CUstream stream) {
  return Serve([&] {
    Forget(stream);
    return Real().cuStreamDestroy_v2(stream);
  });
}

// The same function, under the name it had before CUDA 4.
CUresult cuStreamDestroy(CUstream stream) { return cuStreamDestroy_v2(stream); }

CUresult cuStreamBeginCapture_v2(CUstream stream, int mode) {
  return Serve([&] {
    Forget(stream);
    return Real().cuStreamBeginCapture_v2(stream, mode);
  });
}

CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, int mode) {
  return Serve([&] {
    Forget(stream);
    return Real().cuStreamBeginCapture_v2_ptsz(stream, mode);
  });
}

CUresult cuStreamBeginCaptureToGraph(CUstream stream, void* graph, const void* dependencies,
                                     const void* edges, std::size_t count, int mode) {
  return Serve([&] {
    Forget(stream);
    return Real().cuStreamBeginCaptureToGraph(stream, graph, dependencies, edges, count, mode);
  });
}

CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream stream, void* graph, const void* dependencies,
                                          const void* edges, std::size_t count, int mode) {
  return Serve([&] {
    Forget(stream);
    return Real().cuStreamBeginCaptureToGraph_ptsz(stream, graph, dependencies, edges, count, mode);
  });
}

}  // namespace thimble::xla
