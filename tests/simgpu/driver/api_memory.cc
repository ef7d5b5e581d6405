// Plain allocations, managed memory, pinned host memory.
#include <algorithm>

#include "tests/simgpu/driver/simulator.h"

#undef cuMemAdvise
#undef cuMemPrefetchAsync

using simgpu::Account;
using simgpu::Address;
using simgpu::Bytes;
using simgpu::Call;
using simgpu::HostBlock;
using simgpu::HostKind;
using simgpu::Kind;
using simgpu::Outcome;
using simgpu::Segment;
using simgpu::Simulator;

namespace {

int CurrentDevice() { return Simulator::Get().contexts.Current()->device; }

double PriceOfAllocation(Bytes bytes) {
  const simgpu::Profile& profile = Simulator::Get().clock.profile();
  return profile.alloc_us + profile.alloc_us_per_mib * static_cast<double>(bytes) / 0x1p20;
}

Outcome Allocate(Bytes bytes, CUdeviceptr* pointer) {
  Address address = 0;
  const Outcome outcome =
      Simulator::Get().memory.Allocate(Kind::kPlain, CurrentDevice(), bytes, &address);
  if (outcome.ok()) *pointer = address;
  return outcome;
}

Outcome Free(Address address) {
  Simulator& simulator = Simulator::Get();
  // The device may still have work in its streams that uses the block.
  const Outcome waited = simulator.SynchronizeDevice(CurrentDevice());
  if (!waited.ok()) return waited;
  simulator.races.Freed(address);
  Segment segment;
  Address begin = 0;
  Bytes bytes = 0;
  simulator.memory.Find(address, &segment, &begin, &bytes);
  if (segment.kind == Kind::kPool) return simulator.pools.Free(address, "cuMemFree");
  const Kind kind = segment.kind == Kind::kManaged ? Kind::kManaged : Kind::kPlain;
  return simulator.memory.Free(kind, address, "cuMemFree", nullptr, nullptr);
}

// As the older calls name it.
CUdevice DeviceAt(const CUmemLocation& location) {
  return location.type == CU_MEM_LOCATION_TYPE_DEVICE ? location.id : CU_DEVICE_CPU;
}

Outcome AllocateHost(Bytes bytes, unsigned flags, void** pointer) {
  Address address = 0;
  const Outcome outcome = Simulator::Get().host_memory.Allocate(
      bytes, HostBlock{HostKind::kPinned, CurrentDevice(), flags}, &address);
  if (outcome.ok()) *pointer = reinterpret_cast<void*>(address);
  return outcome;
}

}  // namespace

extern "C" {

CUresult cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* total_bytes) {
  Call call("cuMemGetInfo", {}, Call::Needs::kContext);
  if (!call.ok()) return call.result();
  const Account account = Simulator::Get().memory.AccountOf(CurrentDevice());
  *free_bytes = account.free_bytes();
  *total_bytes = account.total;
  return call.result();
}

CUresult cuMemAlloc_v2(CUdeviceptr* pointer, std::size_t bytes) {
  Call call("cuMemAlloc", {{"size", bytes}}, Call::Needs::kContext);
  if (!call.ok()) return call.result();
  call.Costs(PriceOfAllocation(bytes));
  return call.Return(Allocate(bytes, pointer));
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* pointer, std::size_t* pitch, std::size_t width,
                            std::size_t height, unsigned int element) {
  Call call("cuMemAllocPitch", {{"width", width}, {"height", height}, {"element", element}},
            Call::Needs::kContext);
  if (!call.ok()) return call.result();
  *pitch = (width + 511) / 512 * 512;
  call.Costs(PriceOfAllocation(*pitch * height));
  return call.Return(Allocate(*pitch * height, pointer));
}

CUresult cuMemFree_v2(CUdeviceptr pointer) {
  Call call("cuMemFree", {{"pointer", pointer}}, Call::Needs::kContext);
  if (!call.ok() || pointer == 0) return call.result();
  call.Costs(Simulator::Get().clock.profile().free_us);
  return call.Return(Free(pointer));
}

CUresult cuMemAllocManaged(CUdeviceptr* pointer, std::size_t bytes, unsigned int flags) {
  Call call("cuMemAllocManaged", {{"size", bytes}, {"flags", flags}}, Call::Needs::kContext);
  if (!call.ok()) return call.result();
  Address address = 0;
  const Outcome outcome = Simulator::Get().memory.AllocateManaged(CurrentDevice(), bytes, &address);
  if (outcome.ok()) *pointer = address;
  return call.Return(outcome);
}

CUresult cuMemHostAlloc(void** pointer, std::size_t bytes, unsigned int flags) {
  Call call("cuMemHostAlloc", {{"size", bytes}, {"flags", flags}}, Call::Needs::kContext);
  if (!call.ok()) return call.result();
  return call.Return(AllocateHost(bytes, flags, pointer));
}

CUresult cuMemAllocHost_v2(void** pointer, std::size_t bytes) {
  Call call("cuMemAllocHost", {{"size", bytes}}, Call::Needs::kContext);
  if (!call.ok()) return call.result();
  return call.Return(AllocateHost(bytes, 0, pointer));
}

CUresult cuMemFreeHost(void* pointer) {
  Call call("cuMemFreeHost", {{"pointer", pointer}}, Call::Needs::kContext);
  if (!call.ok() || pointer == nullptr) return call.result();
  const Outcome waited = Simulator::Get().SynchronizeDevice(CurrentDevice());
  if (!waited.ok()) return call.Return(waited);
  Simulator::Get().races.Freed(reinterpret_cast<Address>(pointer));
  return call.Return(
      Simulator::Get().host_memory.Free(HostKind::kPinned, reinterpret_cast<Address>(pointer)));
}

CUresult cuMemHostRegister_v2(void* pointer, std::size_t bytes, unsigned int flags) {
  Call call("cuMemHostRegister", {{"pointer", pointer}, {"size", bytes}, {"flags", flags}},
            Call::Needs::kContext);
  if (!call.ok()) return call.result();
  const HostBlock block = {HostKind::kRegistered, CurrentDevice(), flags};
  return call.Return(
      Simulator::Get().host_memory.Register(reinterpret_cast<Address>(pointer), bytes, block));
}

CUresult cuMemHostUnregister(void* pointer) {
  Call call("cuMemHostUnregister", {{"pointer", pointer}}, Call::Needs::kContext);
  if (!call.ok()) return call.result();
  const auto address = reinterpret_cast<Address>(pointer);
  Simulator::Get().races.Unpinning(address);
  return call.Return(Simulator::Get().host_memory.Unregister(address));
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* device, void* pointer, unsigned int flags) {
  Call call("cuMemHostGetDevicePointer", {{"pointer", pointer}, {"flags", flags}},
            Call::Needs::kContext);
  if (!call.ok()) return call.result();
  const auto address = reinterpret_cast<Address>(pointer);
  if (!Simulator::Get().host_memory.Knows(address)) return call.Return(CUDA_ERROR_INVALID_VALUE);
  *device = address;
  return call.result();
}

CUresult cuMemHostGetFlags(unsigned int* flags, void* pointer) {
  Call call("cuMemHostGetFlags", {{"pointer", pointer}}, Call::Needs::kContext);
  if (!call.ok()) return call.result();
  HostBlock block;
  Address begin = 0;
  Bytes bytes = 0;
  if (!Simulator::Get().host_memory.Find(reinterpret_cast<Address>(pointer), &block, &begin,
                                         &bytes)) {
    return call.Return(CUDA_ERROR_INVALID_VALUE);
  }
  *flags = block.flags;
  return call.result();
}

// Hints change nothing here.
CUresult cuMemAdvise(CUdeviceptr pointer, std::size_t bytes, CUmem_advise advice, CUdevice device) {
  Call call("cuMemAdvise",
            {{"pointer", pointer}, {"size", bytes}, {"advice", advice}, {"device", device}});
  return call.result();
}

CUresult cuMemAdvise_v2(CUdeviceptr pointer, std::size_t bytes, CUmem_advise advice,
                        CUmemLocation location) {
  return cuMemAdvise(pointer, bytes, advice, DeviceAt(location));
}

CUresult cuMemPrefetchAsync(CUdeviceptr pointer, std::size_t bytes, CUdevice device,
                            CUstream stream) {
  Call call("cuMemPrefetchAsync",
            {{"pointer", pointer}, {"size", bytes}, {"device", device}, {"stream", stream}},
            Call::ContextUnless(stream));
  if (!call.ok()) return call.result();
  if (device != CU_DEVICE_CPU && !Simulator::Get().IsDevice(device)) {
    return call.Return(CUDA_ERROR_INVALID_DEVICE);
  }
  simgpu::Work work;
  work.name = "cuMemPrefetchAsync";
  work.demand.kind = device == CU_DEVICE_CPU ? simgpu::Demand::Kind::kCopyOut
                                             : simgpu::Demand::Kind::kCopyIn;  // of pages
  work.demand.device = std::max(device, 0);
  work.run = [=] {
    const int to = device == CU_DEVICE_CPU ? simgpu::kHost : device;
    return Simulator::Get().memory.Prefetch(pointer, bytes, to);
  };
  return call.Return(Simulator::Get().Start(stream, work));
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr pointer, std::size_t bytes, CUmemLocation location,
                               unsigned int /*flags*/, CUstream stream) {
  return cuMemPrefetchAsync(pointer, bytes, DeviceAt(location), stream);
}

}  // extern "C"
