// Device attributes and names. The figures are an A100's.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>

#include "tests/simgpu/driver/simulator.h"

#undef cuDeviceGetUuid

using simgpu::Call;
using simgpu::Options;
using simgpu::Simulator;

namespace {

const std::map<int, int>& FixedAttributes() {
  static const std::map<int, int> attributes = {
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 166912},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 167936},
      {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024},
      {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
      {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
      {CU_DEVICE_ATTRIBUTE_MAX_PITCH, 2147483647},
      {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
      {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
      {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1410000},
      {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
      {CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1},
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 108},
      {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
      {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
      {CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 1},
      {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 1593000},
      {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 5120},
      {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 41943040},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32},
      {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3},
      {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
      {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
      {CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED, 1},
      {CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED, 1},
      {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
      {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, 1},
      {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
      {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
      {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
      {CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 2},
      // Stream memory operations; cuda.h gives the first two old names only.
      {CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 1},
      {CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR, 1},
  };
  return attributes;
}

int AttributeOf(CUdevice_attribute attribute, int device) {
  const Options& options = Simulator::Get().options;
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      return options.capability / 10;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      return options.capability % 10;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
      return 4 + device;
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
      return options.vmm;
    case CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID:
      return options.numa;
    case CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
      return options.vmm && options.numa_chunks;
    case CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
      return options.vmm && options.host_chunks;
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
      return options.pools;
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
      return options.descriptors;
    default: {
      const auto found = FixedAttributes().find(attribute);
      return found == FixedAttributes().end() ? 0 : found->second;
    }
  }
}

// Refuses the call if the device does not exist.
bool Exists(Call& call, CUdevice device) {
  if (!call.ok()) return false;
  if (!Simulator::Get().IsDevice(device)) call.Return(CUDA_ERROR_INVALID_DEVICE);
  return call.ok();
}

}  // namespace

extern "C" {

CUresult cuDeviceGetCount(int* count) {
  Call call("cuDeviceGetCount");
  if (!call.ok()) return call.result();
  *count = Simulator::Get().options.gpus;
  return call.result();
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  Call call("cuDeviceGet", {{"ordinal", ordinal}});
  if (!Exists(call, ordinal)) return call.result();
  *device = ordinal;
  return call.result();
}

CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  Call call("cuDeviceGetName", {{"device", device}});
  if (!Exists(call, device)) return call.result();
  std::snprintf(name, static_cast<std::size_t>(length), "%s",
                Simulator::Get().options.NameOf(device).c_str());
  return call.result();
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  Call call("cuDeviceGetUuid", {{"device", device}});
  if (!Exists(call, device)) return call.result();
  std::memset(uuid, 0x5a, sizeof(*uuid));
  uuid->bytes[0] = static_cast<char>(device);
  return call.result();
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) { return cuDeviceGetUuid_v2(uuid, device); }

CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice device) {
  Call call("cuDeviceTotalMem", {{"device", device}});
  if (!Exists(call, device)) return call.result();
  *bytes = Simulator::Get().options.MemoryOf(device);
  return call.result();
}

CUresult cuDeviceGetPCIBusId(char* text, int length, CUdevice device) {
  Call call("cuDeviceGetPCIBusId", {{"device", device}});
  if (!Exists(call, device)) return call.result();
  std::snprintf(text, static_cast<std::size_t>(length), "0000:%02x:00.0", 4 + device);
  return call.result();
}

CUresult cuDeviceGetByPCIBusId(CUdevice* device, const char* text) {
  Call call("cuDeviceGetByPCIBusId");
  if (!call.ok()) return call.result();
  unsigned domain = 0;
  unsigned bus = 0;
  const bool parsed = std::sscanf(text, "%x:%x:", &domain, &bus) == 2;
  *device = static_cast<CUdevice>(bus) - 4;
  if (!parsed || !Exists(call, *device)) return call.Return(CUDA_ERROR_INVALID_DEVICE);
  return call.result();
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
  Call call("cuDeviceComputeCapability", {{"device", device}});
  if (!Exists(call, device)) return call.result();
  *major = AttributeOf(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  *minor = AttributeOf(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  return call.result();
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  Call call("cuDeviceGetAttribute", {{"attribute", attribute}, {"device", device}});
  if (!Exists(call, device)) return call.result();
  *value = AttributeOf(attribute, device);
  return call.result();
}

CUresult cuDeviceCanAccessPeer(int* can_access, CUdevice device, CUdevice peer) {
  Call call("cuDeviceCanAccessPeer", {{"device", device}, {"peer", peer}});
  if (!Exists(call, device) || !Exists(call, peer)) return call.result();
  *can_access = device != peer && Simulator::Get().options.peers;
  return call.result();
}

CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice device,
                                 CUdevice peer) {
  Call call("cuDeviceGetP2PAttribute",
            {{"attribute", attribute}, {"device", device}, {"peer", peer}});
  if (!Exists(call, device) || !Exists(call, peer)) return call.result();
  *value = attribute == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED && device != peer &&
           Simulator::Get().options.peers;
  return call.result();
}

}  // extern "C"
