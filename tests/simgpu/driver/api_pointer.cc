// What an address is.
#include <algorithm>

#include "tests/simgpu/driver/simulator.h"

using simgpu::Address;
using simgpu::Bytes;
using simgpu::Call;
using simgpu::HostBlock;
using simgpu::Kind;
using simgpu::Segment;
using simgpu::Simulator;

namespace {

// Everything known about a pointer; nothing if `is_known` is false.
struct Facts {
  bool is_known = false;
  bool is_host = false;
  bool is_managed = false;
  bool is_host_chunk = false;  // on the host, but the program cannot touch it
  bool is_mapped = true;
  int device = 0;
  Address begin = 0;
  Bytes bytes = 0;
  Segment segment;
};

Facts FactsOf(Address address) {
  Simulator& simulator = Simulator::Get();
  Facts facts;
  HostBlock block;
  if (simulator.host_memory.Find(address, &block, &facts.begin, &facts.bytes)) {
    facts.is_known = true;
    facts.is_host = true;
    facts.device = block.device;
  } else if (simulator.memory.Find(address, &facts.segment, &facts.begin, &facts.bytes)) {
    facts.is_known = true;
    facts.is_managed = facts.segment.kind == Kind::kManaged;
    facts.is_host_chunk = facts.segment.device == simgpu::kHost;
    facts.device = std::max(facts.segment.device, 0);
  } else if (simulator.memory.FindReservation(address, &facts.begin, &facts.bytes)) {
    facts.is_known = true;
    facts.is_mapped = false;
  }
  return facts;
}

// False if `attribute` says nothing about such a pointer.
bool Answer(const Facts& facts, Address address, CUpointer_attribute attribute, void* value) {
  const auto pointer = [value](Address is) { *static_cast<CUdeviceptr*>(value) = is; };
  const auto number = [value](unsigned is) { *static_cast<unsigned*>(value) = is; };
  const auto flag = [value](bool is) { *static_cast<bool*>(value) = is; };
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      *static_cast<CUcontext*>(value) = Simulator::Get().contexts.PrimaryOf(facts.device);
      return true;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      number(facts.is_host || facts.is_host_chunk ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
      return true;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      pointer(address);
      return true;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (facts.is_host || facts.is_managed) pointer(address);
      return facts.is_host || facts.is_managed;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      flag(false);
      return true;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      pointer(facts.begin);
      return true;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      *static_cast<std::size_t*>(value) = facts.bytes;
      return true;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      flag(facts.is_managed);
      return true;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      number(static_cast<unsigned>(facts.device));
      return true;
    case CU_POINTER_ATTRIBUTE_MAPPED:
      flag(facts.is_mapped);
      return true;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      *static_cast<cuuint64_t*>(value) = 0;
      return true;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      number(CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE);
      return true;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      *static_cast<CUmemoryPool*>(value) = facts.segment.pool;
      return true;
    default:
      return false;
  }
}

}  // namespace

extern "C" {

CUresult cuPointerGetAttribute(void* value, CUpointer_attribute attribute, CUdeviceptr pointer) {
  Call call("cuPointerGetAttribute", {{"attribute", attribute}, {"pointer", pointer}});
  if (!call.ok()) return call.result();
  // Programs use this call to find out, so an unknown pointer is not a mistake.
  const Facts facts = FactsOf(pointer);
  if (!facts.is_known || !Answer(facts, pointer, attribute, value)) {
    return call.Return(CUDA_ERROR_INVALID_VALUE);
  }
  return call.result();
}

// Succeeds for any pointer; unknown attributes become zero.
CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute* attributes, void** values,
                                CUdeviceptr pointer) {
  Call call("cuPointerGetAttributes", {{"count", count}, {"pointer", pointer}});
  if (!call.ok()) return call.result();
  const Facts facts = FactsOf(pointer);
  for (unsigned int i = 0; i < count; ++i) {
    if (facts.is_known && Answer(facts, pointer, attributes[i], values[i])) continue;
    const bool is_flag = attributes[i] == CU_POINTER_ATTRIBUTE_IS_MANAGED ||
                         attributes[i] == CU_POINTER_ATTRIBUTE_MAPPED;
    const bool is_number = attributes[i] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) {
      *static_cast<int*>(values[i]) = -2;  // as documented: no device
    } else if (is_flag) {
      *static_cast<bool*>(values[i]) = false;
    } else if (is_number) {
      *static_cast<unsigned*>(values[i]) = 0;
    } else {
      *static_cast<std::uint64_t*>(values[i]) = 0;
    }
  }
  return call.result();
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* begin, std::size_t* bytes, CUdeviceptr pointer) {
  Call call("cuMemGetAddressRange", {{"pointer", pointer}}, Call::Needs::kContext);
  if (!call.ok()) return call.result();
  const Facts facts = FactsOf(pointer);
  if (!facts.is_known || !facts.is_mapped) return call.Return(CUDA_ERROR_NOT_FOUND);
  if (begin != nullptr) *begin = facts.begin;
  if (bytes != nullptr) *bytes = facts.bytes;
  return call.result();
}

}  // extern "C"
