// Virtual memory management. The rules are kept by Memory; what cuda.h has beyond them (flags,
// properties, handle types) is refused here wherever it says so.
#include <algorithm>
#include <string>

#include "tests/simgpu/driver/simulator.h"

using simgpu::Address;
using simgpu::Call;
using simgpu::Chunk;
using simgpu::Illegal;
using simgpu::Kind;
using simgpu::Outcome;
using simgpu::Segment;
using simgpu::Simulator;
using simgpu::Success;

namespace {

const char* NameOf(CUmemLocationType type) {
  if (type == CU_MEM_LOCATION_TYPE_HOST_NUMA) return "node";
  return type == CU_MEM_LOCATION_TYPE_HOST ? "host" : "device";
}

Outcome NoSuch(const char* what, int id) {
  return Illegal(CUDA_ERROR_INVALID_DEVICE,
                 std::string("there is no ") + what + std::to_string(id));
}

Outcome CheckLocation(const CUmemLocation& location) {
  const Simulator& simulator = Simulator::Get();
  switch (location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      return simulator.IsDevice(location.id) ? Success() : NoSuch("device ", location.id);
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
      if (!simulator.options.numa_chunks) return simgpu::Failure(CUDA_ERROR_NOT_SUPPORTED);
      // A machine without NUMA has node 0, as cuda.h says.
      return location.id >= 0 && location.id <= std::max(simulator.options.numa, 0)
                 ? Success()
                 : NoSuch("NUMA node ", location.id);
    case CU_MEM_LOCATION_TYPE_HOST:
      return simulator.options.host_chunks ? Success() : simgpu::Failure(CUDA_ERROR_NOT_SUPPORTED);
    default:
      return Illegal(CUDA_ERROR_INVALID_VALUE,
                     "memory is of a device, of a NUMA node of the host, or of the host");
  }
}

Outcome CheckProperties(const CUmemAllocationProp& properties) {
  const Simulator& simulator = Simulator::Get();
  if (!simulator.options.vmm) return simgpu::Failure(CUDA_ERROR_NOT_SUPPORTED);
  if (properties.type != CU_MEM_ALLOCATION_TYPE_PINNED) {
    return Illegal(CUDA_ERROR_INVALID_VALUE, "only pinned memory is simulated");
  }
  Outcome outcome = CheckLocation(properties.location);
  if (!outcome.ok()) return outcome;
  if (properties.location.type == CU_MEM_LOCATION_TYPE_HOST &&
      properties.requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE) {
    return Illegal(CUDA_ERROR_INVALID_VALUE, "memory of the host without a node cannot be shared");
  }
  const int types = properties.requestedHandleTypes;
  const bool shareable = types == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  if (types != CU_MEM_HANDLE_TYPE_NONE && !(shareable && simulator.options.descriptors)) {
    return simgpu::Failure(CUDA_ERROR_NOT_SUPPORTED);
  }
  return Success();
}

Outcome CheckFlags(unsigned long long flags) {
  if (flags == 0) return Success();
  return Illegal(CUDA_ERROR_INVALID_VALUE, "flags " + std::to_string(flags) + " are not zero");
}

const simgpu::Profile& Prices() { return Simulator::Get().clock.profile(); }

bool Fails(Call& call, const Outcome& outcome) {
  if (outcome.ok()) return false;
  call.Return(outcome);
  return true;
}

}  // namespace

extern "C" {

CUresult cuMemGetAllocationGranularity(std::size_t* granularity, const CUmemAllocationProp* prop,
                                       CUmemAllocationGranularity_flags option) {
  Call call("cuMemGetAllocationGranularity", {{"device", prop->location.id},
                                              {"handle_types", prop->requestedHandleTypes},
                                              {"option", option}});
  if (!call.ok() || Fails(call, CheckProperties(*prop))) return call.result();
  *granularity = Simulator::Get().options.granularity;
  return call.result();
}

CUresult cuMemAddressReserve(CUdeviceptr* pointer, std::size_t bytes, std::size_t alignment,
                             CUdeviceptr hint, unsigned long long flags) {
  Call call("cuMemAddressReserve",
            {{"size", bytes}, {"alignment", alignment}, {"hint", hint}, {"flags", flags}});
  if (!call.ok() || Fails(call, CheckFlags(flags))) return call.result();
  Address address = 0;
  if (Fails(call, Simulator::Get().memory.Reserve(bytes, alignment, &address))) {
    return call.result();
  }
  *pointer = address;  // a hint is only a hint
  call.Costs(Prices().reserve_us);
  return call.result();
}

CUresult cuMemAddressFree(CUdeviceptr pointer, std::size_t bytes) {
  Call call("cuMemAddressFree", {{"pointer", pointer}, {"size", bytes}});
  if (!call.ok()) return call.result();
  return call.Return(Simulator::Get().memory.Release(pointer, bytes));
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t bytes,
                     const CUmemAllocationProp* prop, unsigned long long flags) {
  Call call("cuMemCreate", {{"size", bytes},
                            {NameOf(prop->location.type), prop->location.id},
                            {"handle_types", prop->requestedHandleTypes},
                            {"flags", flags}});
  if (!call.ok() || Fails(call, CheckFlags(flags)) || Fails(call, CheckProperties(*prop))) {
    return call.result();
  }
  call.Costs(Prices().create_us);
  const bool shareable = prop->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE;
  return call.Return(Simulator::Get().memory.Create(prop->location, bytes, shareable, handle));
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  Call call("cuMemRelease", {{"handle", handle}});
  if (!call.ok()) return call.result();
  return call.Return(Simulator::Get().memory.Destroy(handle));
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* pointer) {
  Call call("cuMemRetainAllocationHandle", {{"pointer", pointer}});
  if (!call.ok()) return call.result();
  return call.Return(Simulator::Get().memory.Retain(reinterpret_cast<Address>(pointer), handle));
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* prop,
                                                CUmemGenericAllocationHandle handle) {
  Call call("cuMemGetAllocationPropertiesFromHandle", {{"handle", handle}});
  if (!call.ok()) return call.result();
  const std::shared_ptr<Chunk> chunk = Simulator::Get().memory.FindChunk(handle);
  if (chunk == nullptr) return call.Refuse(CUDA_ERROR_INVALID_VALUE, "the handle is not alive");
  *prop = {};
  prop->type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop->location = chunk->location;
  prop->requestedHandleTypes =
      chunk->shareable ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : CU_MEM_HANDLE_TYPE_NONE;
  return call.result();
}

CUresult cuMemMap(CUdeviceptr pointer, std::size_t bytes, std::size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags) {
  Call call("cuMemMap", {{"pointer", pointer},
                         {"size", bytes},
                         {"offset", offset},
                         {"handle", handle},
                         {"flags", flags}});
  if (!call.ok() || Fails(call, CheckFlags(flags))) return call.result();
  call.Costs(Prices().map_us);
  const Outcome outcome = Simulator::Get().memory.Map(pointer, bytes, offset, handle);
  if (outcome.ok()) Simulator::Get().races.Mapped(pointer, bytes);
  return call.Return(outcome);
}

CUresult cuMemUnmap(CUdeviceptr pointer, std::size_t bytes) {
  Call call("cuMemUnmap", {{"pointer", pointer}, {"size", bytes}});
  if (!call.ok()) return call.result();
  call.Costs(Prices().unmap_us);
  Simulator::Get().races.Unmapping(pointer, bytes);
  return call.Return(Simulator::Get().memory.Unmap(pointer, bytes));
}

CUresult cuMemSetAccess(CUdeviceptr pointer, std::size_t bytes, const CUmemAccessDesc* access,
                        std::size_t count) {
  Call call("cuMemSetAccess", {{"pointer", pointer}, {"size", bytes}});
  Simulator& simulator = Simulator::Get();
  std::uint32_t grant = 0;
  std::uint32_t revoke = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const int device = access[i].location.id;
    if (call.is_logged()) {
      call.Note("device " + std::to_string(device) + ":" + std::to_string(access[i].flags));
    }
    if (!call.ok()) continue;
    if (access[i].location.type == CU_MEM_LOCATION_TYPE_HOST ||
        access[i].location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA) {
      return call.Return(CUDA_ERROR_NOT_SUPPORTED);  // programs cannot touch device addresses here
    }
    if (access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || !simulator.IsDevice(device)) {
      return call.Refuse(CUDA_ERROR_INVALID_DEVICE, "there is no device " + std::to_string(device));
    }
    const bool usable = access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ||
                        access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READ;
    (usable ? grant : revoke) |= 1u << device;
  }
  if (!call.ok()) return call.result();
  if (count == 0) return call.Refuse(CUDA_ERROR_INVALID_VALUE, "no device is named");
  std::size_t mappings = 0;
  const Outcome outcome = simulator.memory.SetAccess(pointer, bytes, grant, revoke, &mappings);
  call.Costs(Prices().set_access_us * static_cast<double>(mappings));
  return call.Return(outcome);
}

CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location,
                        CUdeviceptr pointer) {
  Call call("cuMemGetAccess", {{"device", location->id}, {"pointer", pointer}});
  if (!call.ok()) return call.result();
  Segment segment;
  Address begin = 0;
  simgpu::Bytes bytes = 0;
  if (!Simulator::Get().memory.Find(pointer, &segment, &begin, &bytes)) {
    return call.Refuse(CUDA_ERROR_INVALID_VALUE, simgpu::Hex(pointer) + " is not mapped");
  }
  const bool usable =
      location->type == CU_MEM_LOCATION_TYPE_DEVICE && (segment.access >> location->id & 1) != 0;
  *flags = usable ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return call.result();
}

CUresult cuMemExportToShareableHandle(void* shareable, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags) {
  Call call("cuMemExportToShareableHandle", {{"handle", handle}, {"type", type}});
  if (!call.ok() || Fails(call, CheckFlags(flags))) return call.result();
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
    return call.Return(CUDA_ERROR_NOT_SUPPORTED);
  }
  return call.Return(Simulator::Get().memory.Export(handle, static_cast<int*>(shareable)));
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* shareable,
                                        CUmemAllocationHandleType type) {
  Call call("cuMemImportFromShareableHandle", {{"type", type}});
  if (!call.ok()) return call.result();
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
    return call.Return(CUDA_ERROR_NOT_SUPPORTED);
  }
  const auto descriptor = static_cast<int>(reinterpret_cast<std::intptr_t>(shareable));
  return call.Return(Simulator::Get().memory.Import(descriptor, handle));
}

}  // extern "C"
