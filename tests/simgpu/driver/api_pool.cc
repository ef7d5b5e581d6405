// Stream-ordered allocation.
#include <string>

#include "tests/simgpu/driver/simulator.h"

using simgpu::Address;
using simgpu::Call;
using simgpu::Outcome;
using simgpu::Pool;
using simgpu::Simulator;
using simgpu::Success;
using simgpu::Work;

namespace {

// A live pool, or null after the call was refused.
std::shared_ptr<Pool> FindPool(Call& call, CUmemoryPool handle) {
  std::shared_ptr<Pool> pool = Simulator::Get().pools.Find(handle);
  if (pool == nullptr) call.Refuse(CUDA_ERROR_INVALID_VALUE, "the pool is not alive");
  return pool;
}

// Memory is there at once: no real device would give an address later than this either.
CUresult Allocate(Call& call, CUdeviceptr* pointer, std::size_t bytes, CUmemoryPool pool,
                  CUstream stream) {
  Simulator& simulator = Simulator::Get();
  if (simulator.FindStream(stream) == nullptr) {
    return call.Refuse(CUDA_ERROR_INVALID_HANDLE, "the stream is not alive");
  }
  Address address = 0;
  const Outcome outcome = simulator.pools.Allocate(pool, bytes, &address);
  if (outcome.ok()) *pointer = address;
  return call.Return(outcome);
}

bool Exists(Call& call, CUdevice device) {
  if (!call.ok()) return false;
  if (!Simulator::Get().IsDevice(device)) call.Return(CUDA_ERROR_INVALID_DEVICE);
  return call.ok();
}

}  // namespace

extern "C" {

CUresult cuMemAllocAsync(CUdeviceptr* pointer, std::size_t bytes, CUstream stream) {
  Call call("cuMemAllocAsync", {{"size", bytes}, {"stream", stream}}, Call::Needs::kContext);
  if (!call.ok()) return call.result();
  Simulator& simulator = Simulator::Get();
  const CUmemoryPool pool = simulator.pools.Current(simulator.contexts.Current()->device);
  return Allocate(call, pointer, bytes, pool, stream);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* pointer, std::size_t bytes, CUmemoryPool pool,
                                 CUstream stream) {
  Call call("cuMemAllocFromPoolAsync", {{"size", bytes}, {"pool", pool}, {"stream", stream}},
            Call::Needs::kContext);
  if (!call.ok()) return call.result();
  return Allocate(call, pointer, bytes, pool, stream);
}

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) {
  Call call("cuMemFreeAsync", {{"pointer", pointer}, {"stream", stream}},
            Call::ContextUnless(stream));
  if (!call.ok() || pointer == 0) return call.result();
  const auto found = Simulator::Get().FindStream(stream);
  if (found != nullptr) Simulator::Get().races.FreeingOn(found->number(), pointer);
  Work work;
  work.type = CU_GRAPH_NODE_TYPE_MEM_FREE;
  work.name = "cuMemFreeAsync";
  work.run = [pointer] { return Simulator::Get().pools.Free(pointer, "cuMemFreeAsync"); };
  return call.Return(Simulator::Get().Start(stream, work));
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
  Call call("cuDeviceGetDefaultMemPool", {{"device", device}});
  if (!Exists(call, device)) return call.result();
  *pool = Simulator::Get().pools.Default(device);
  return call.result();
}

CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device) {
  Call call("cuDeviceGetMemPool", {{"device", device}});
  if (!Exists(call, device)) return call.result();
  *pool = Simulator::Get().pools.Current(device);
  return call.result();
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
  Call call("cuDeviceSetMemPool", {{"device", device}, {"pool", pool}});
  if (!Exists(call, device)) return call.result();
  const std::shared_ptr<Pool> found = FindPool(call, pool);
  if (found == nullptr) return call.result();
  if (found->device != device) {
    return call.Refuse(CUDA_ERROR_INVALID_VALUE,
                       "the pool is of device " + std::to_string(found->device));
  }
  Simulator::Get().pools.SetCurrent(device, pool);
  return call.result();
}

CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* properties) {
  Call call("cuMemPoolCreate", {{"device", properties->location.id},
                                {"handle_types", properties->handleTypes},
                                {"most", properties->maxSize}});
  if (!Exists(call, properties->location.id)) return call.result();
  if (!Simulator::Get().options.pools) return call.Return(CUDA_ERROR_NOT_SUPPORTED);
  if (properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
      properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
    return call.Refuse(CUDA_ERROR_INVALID_VALUE, "only pools of device memory are simulated");
  }
  *pool = Simulator::Get().pools.Create(properties->location.id, properties->maxSize);
  return call.result();
}

CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  Call call("cuMemPoolDestroy", {{"pool", pool}});
  if (!call.ok()) return call.result();
  return call.Return(Simulator::Get().pools.Destroy(pool));
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, std::size_t keep) {
  Call call("cuMemPoolTrimTo", {{"pool", pool}, {"keep", keep}});
  if (!call.ok()) return call.result();
  const std::shared_ptr<Pool> found = FindPool(call, pool);
  if (found != nullptr) Simulator::Get().pools.Trim(*found, keep);
  return call.result();
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  Call call("cuMemPoolSetAttribute", {{"pool", pool}, {"attribute", attribute}});
  if (!call.ok()) return call.result();
  const std::shared_ptr<Pool> found = FindPool(call, pool);
  if (found == nullptr) return call.result();
  return call.Return(Simulator::Get().pools.SetAttribute(*found, attribute, value));
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  Call call("cuMemPoolGetAttribute", {{"pool", pool}, {"attribute", attribute}});
  if (!call.ok()) return call.result();
  const std::shared_ptr<Pool> found = FindPool(call, pool);
  if (found == nullptr) return call.result();
  return call.Return(Simulator::Get().pools.GetAttribute(*found, attribute, value));
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* access, std::size_t count) {
  Call call("cuMemPoolSetAccess", {{"pool", pool}, {"count", count}});
  if (!call.ok()) return call.result();
  const std::shared_ptr<Pool> found = FindPool(call, pool);
  if (found == nullptr) return call.result();
  std::uint32_t grant = 0;
  std::uint32_t revoke = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (!Exists(call, access[i].location.id)) return call.result();
    const bool usable = access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE;
    if (!usable && access[i].location.id == found->device) {
      return call.Refuse(CUDA_ERROR_INVALID_VALUE, "a device keeps access to its own pool");
    }
    (usable ? grant : revoke) |= 1u << access[i].location.id;
  }
  Simulator::Get().pools.SetAccess(*found, grant, revoke);
  return call.result();
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool pool, CUmemLocation* location) {
  Call call("cuMemPoolGetAccess", {{"pool", pool}, {"device", location->id}});
  if (!Exists(call, location->id)) return call.result();
  const std::shared_ptr<Pool> found = FindPool(call, pool);
  if (found == nullptr) return call.result();
  const bool usable = (found->access >> location->id & 1) != 0;
  *flags = usable ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return call.result();
}

}  // extern "C"
