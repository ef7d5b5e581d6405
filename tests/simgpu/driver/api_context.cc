// Contexts, their limits, and access between devices.
#include "tests/simgpu/driver/simulator.h"

#undef cuCtxCreate

using simgpu::Call;
using simgpu::Context;
using simgpu::Simulator;

namespace {

bool Exists(Call& call, CUdevice device) {
  if (!call.ok()) return false;
  if (!Simulator::Get().IsDevice(device)) call.Return(CUDA_ERROR_INVALID_DEVICE);
  return call.ok();
}

CUresult CreateContext(CUcontext* context, CUdevice device) {
  Call call("cuCtxCreate", {{"device", device}});
  if (!Exists(call, device)) return call.result();
  *context = Simulator::Get().contexts.Create(device);
  Simulator::Get().contexts.Push(*context);
  return call.result();
}

// For the log: which device a context is of says more than its handle.
int DeviceOf(CUcontext context) {
  const std::shared_ptr<Context> found = Simulator::Get().contexts.Find(context);
  return found == nullptr ? -1 : found->device;
}

// Access to the memory of `peer` from the device of the current context.
CUresult SetPeer(Call& call, CUcontext peer, bool enabled) {
  Simulator& simulator = Simulator::Get();
  const std::shared_ptr<Context> other = simulator.contexts.Find(peer);
  if (other == nullptr) return call.Refuse(CUDA_ERROR_INVALID_CONTEXT, "the peer is not alive");
  const int device = simulator.contexts.Current()->device;
  if (device == other->device) return call.Return(CUDA_ERROR_INVALID_DEVICE);
  if (!simulator.options.peers) return call.Return(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
  if (simulator.memory.IsPeer(device, other->device) == enabled) {
    return call.Return(enabled ? CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
                               : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  }
  simulator.memory.SetPeer(device, other->device, enabled);
  return call.result();
}

}  // namespace

extern "C" {

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  Call call("cuDevicePrimaryCtxRetain", {{"device", device}});
  if (!Exists(call, device)) return call.result();
  *context = Simulator::Get().contexts.Retain(device);
  return call.result();
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  Call call("cuDevicePrimaryCtxRelease", {{"device", device}});
  if (!Exists(call, device)) return call.result();
  if (Simulator::Get().contexts.Release(device)) return call.result();
  return call.Refuse(CUDA_ERROR_INVALID_CONTEXT, "the primary context is not retained");
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  Call call("cuDevicePrimaryCtxReset", {{"device", device}});
  if (!Exists(call, device)) return call.result();
  Simulator::Get().contexts.Reset(device);
  return call.result();
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int* flags, int* active) {
  Call call("cuDevicePrimaryCtxGetState", {{"device", device}});
  if (!Exists(call, device)) return call.result();
  *flags = Simulator::Get().contexts.flags(device);
  *active = Simulator::Get().contexts.retained(device) > 0;
  return call.result();
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags) {
  Call call("cuDevicePrimaryCtxSetFlags", {{"device", device}, {"flags", flags}});
  if (!Exists(call, device)) return call.result();
  Simulator::Get().contexts.SetFlags(device, flags);
  return call.result();
}

CUresult cuCtxCreate_v2(CUcontext* context, unsigned int /*flags*/, CUdevice device) {
  return CreateContext(context, device);
}

CUresult cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam* /*affinity*/, int /*affinities*/,
                        unsigned int /*flags*/, CUdevice device) {
  return CreateContext(context, device);
}

CUresult cuCtxDestroy_v2(CUcontext context) {
  Call call("cuCtxDestroy", {{"context", context}});
  if (!call.ok()) return call.result();
  Simulator& simulator = Simulator::Get();
  if (!simulator.contexts.Destroy(context)) {
    return call.Refuse(CUDA_ERROR_INVALID_CONTEXT, "it is not alive, or a primary one");
  }
  CUcontext popped = nullptr;
  if (simulator.contexts.CurrentHandle() == context) simulator.contexts.Pop(&popped);
  return call.result();
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  Call call("cuCtxGetCurrent");
  if (!call.ok()) return call.result();
  *context = Simulator::Get().contexts.CurrentHandle();
  return call.result();
}

CUresult cuCtxSetCurrent(CUcontext context) {
  Call call("cuCtxSetCurrent", {{"device", DeviceOf(context)}});
  if (!call.ok()) return call.result();
  if (context != nullptr && Simulator::Get().contexts.Find(context) == nullptr) {
    return call.Refuse(CUDA_ERROR_INVALID_CONTEXT, "the context is not alive");
  }
  Simulator::Get().contexts.SetCurrent(context);
  return call.result();
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
  Call call("cuCtxPushCurrent", {{"device", DeviceOf(context)}});
  if (!call.ok()) return call.result();
  const bool alive = Simulator::Get().contexts.Find(context) != nullptr;
  if (!alive || !Simulator::Get().contexts.Push(context)) {
    return call.Refuse(CUDA_ERROR_INVALID_CONTEXT,
                       alive ? "too many contexts on the stack" : "the context is not alive");
  }
  return call.result();
}

CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  Call call("cuCtxPopCurrent");
  if (!call.ok()) return call.result();
  CUcontext popped = nullptr;
  if (!Simulator::Get().contexts.Pop(&popped)) return call.Return(CUDA_ERROR_INVALID_CONTEXT);
  if (context != nullptr) *context = popped;
  return call.result();
}

CUresult cuCtxGetDevice(CUdevice* device) {
  Call call("cuCtxGetDevice", {}, Call::Needs::kContext);
  if (!call.ok()) return call.result();
  *device = Simulator::Get().contexts.Current()->device;
  return call.result();
}

CUresult cuCtxGetId(CUcontext context, unsigned long long* id) {
  Call call("cuCtxGetId", {{"context", context}});
  if (!call.ok()) return call.result();
  *id = reinterpret_cast<std::uintptr_t>(
      context != nullptr ? context : Simulator::Get().contexts.CurrentHandle());
  return call.result();
}

CUresult cuCtxGetApiVersion(CUcontext context, unsigned int* version) {
  Call call("cuCtxGetApiVersion", {{"context", context}});
  if (!call.ok()) return call.result();
  *version = 3020;  // of every context since CUDA 3.2
  return call.result();
}

CUresult cuCtxGetFlags(unsigned int* flags) {
  Call call("cuCtxGetFlags", {}, Call::Needs::kContext);
  if (!call.ok()) return call.result();
  *flags = Simulator::Get().contexts.flags(Simulator::Get().contexts.Current()->device);
  return call.result();
}

CUresult cuCtxSetFlags(unsigned int flags) {
  Call call("cuCtxSetFlags", {{"flags", flags}}, Call::Needs::kContext);
  if (!call.ok()) return call.result();
  Simulator& simulator = Simulator::Get();
  simulator.contexts.SetFlags(simulator.contexts.Current()->device, flags);
  return call.result();
}

CUresult cuCtxGetLimit(std::size_t* value, CUlimit limit) {
  Call call("cuCtxGetLimit", {{"limit", limit}}, Call::Needs::kContext);
  if (!call.ok()) return call.result();
  *value = limit == CU_LIMIT_STACK_SIZE ? 1024 : 8 << 20;
  return call.result();
}

// Stack and heap of kernels: there is nothing that could overflow.
CUresult cuCtxSetLimit(CUlimit limit, std::size_t value) {
  Call call("cuCtxSetLimit", {{"limit", limit}, {"value", value}}, Call::Needs::kContext);
  return call.result();
}

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  Call call("cuCtxGetStreamPriorityRange", {}, Call::Needs::kContext);
  if (!call.ok()) return call.result();
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return call.result();
}

CUresult cuCtxSynchronize(void) {
  Call call("cuCtxSynchronize", {}, Call::Needs::kContext);
  if (!call.ok()) return call.result();
  Simulator& simulator = Simulator::Get();
  return call.Return(simulator.SynchronizeDevice(simulator.contexts.Current()->device));
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags) {
  Call call("cuCtxEnablePeerAccess", {{"peer", peer}, {"flags", flags}}, Call::Needs::kContext);
  if (!call.ok()) return call.result();
  return SetPeer(call, peer, true);
}

CUresult cuCtxDisablePeerAccess(CUcontext peer) {
  Call call("cuCtxDisablePeerAccess", {{"peer", peer}}, Call::Needs::kContext);
  if (!call.ok()) return call.result();
  return SetPeer(call, peer, false);
}

}  // extern "C"
