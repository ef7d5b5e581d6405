// Streams that the arenas must no longer query: streams that end, alone or with their context,
// because the next stream may get the same handle; and captured streams, because the query would
// become part of the graph.
#include "xla_plugin/driver_front/front.h"
#include "xla_plugin/driver_front/real_driver.h"
#include "xla_plugin/driver_front/served.h"

namespace thimble::xla {
namespace {

void Forget(CUstream stream) {
  Front& front = Front::Get();
  if (front.on()) front.Forget(stream);
}

template <typename Condition>
void ForgetIf(Condition condition) {
  Front& front = Front::Get();
  if (front.on()) front.ForgetIf(condition);
}

// Forgets everything of `context`, which is about to end.
void ForgetContext(CUcontext context) {
  ForgetIf([&](const Owner& owner) { return owner.context == context; });
}

}  // namespace

CUresult cuStreamDestroy_v2(CUstream stream) {
  return Serve([&] {
    Forget(stream);
    return Real().cuStreamDestroy_v2(stream);
  });
}

// The same function under its name before CUDA 4.
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

// --- Contexts ------------------------------------------------------------------------------------

CUresult cuCtxDestroy_v2(CUcontext context) {
  return Serve([&] {
    ForgetContext(context);
    return Real().cuCtxDestroy_v2(context);
  });
}

CUresult cuCtxDestroy(CUcontext context) {
  return Serve([&] {
    ForgetContext(context);
    return Real().cuCtxDestroy(context);
  });
}

CUresult cuCtxDetach(CUcontext context) {
  return Serve([&] {
    ForgetContext(context);
    return Real().cuCtxDetach(context);
  });
}

// It is unknown which context ends with this call, so forget all contexts that are not primary.
CUresult cuGreenCtxDestroy(CUgreenCtx context) {
  return Serve([&] {
    ForgetIf([](const Owner& owner) { return owner.context != owner.device->primary(); });
    return Real().cuGreenCtxDestroy(context);
  });
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  return Serve([&] {
    ForgetIf([&](const Owner& owner) { return owner.device->identity().handle == device; });
    const CUresult result = Real().cuDevicePrimaryCtxReset_v2(device);
    Front::Get().UpdateDefaultPools();
    return result;
  });
}

CUresult cuDevicePrimaryCtxReset(CUdevice device) { return cuDevicePrimaryCtxReset_v2(device); }

// An arena keeps its context.
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return Serve([&] {
    ForgetIf([&](const Owner& owner) {
      return owner.device->identity().handle == device && owner.device->arena() == nullptr;
    });
    return Real().cuDevicePrimaryCtxRelease_v2(device);
  });
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) { return cuDevicePrimaryCtxRelease_v2(device); }

}  // namespace thimble::xla
