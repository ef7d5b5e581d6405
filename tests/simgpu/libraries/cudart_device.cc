// libcudart.so.12: devices, errors, and the way to the driver's functions.
#include <cstring>

#include "tests/simgpu/libraries/cudart.h"

namespace simgpu {
namespace {

thread_local CUresult last_error = CUDA_SUCCESS;
thread_local int chosen_device = 0;

// cudaDeviceProp of CUDA 12, as cudaGetDeviceProperties_v2 fills it.
struct DeviceProperties {
  char name[256];
  char uuid[16];
  char luid[8];
  unsigned luid_device_node_mask;
  size_t total_global_mem;
  size_t shared_mem_per_block;
  int regs_per_block;
  int warp_size;
  size_t mem_pitch;
  int max_threads_per_block;
  int max_threads_dim[3];
  int max_grid_size[3];
  int clock_rate;
  size_t total_const_mem;
  int major;
  int minor;
  size_t texture_alignment;
  size_t texture_pitch_alignment;
  int device_overlap;
  int multi_processor_count;
  int unused_textures_and_surfaces[44];
  size_t surface_alignment;
  int concurrent_kernels;
  int ecc_enabled;
  int pci_bus_id;
  int pci_device_id;
  int pci_domain_id;
  int tcc_driver;
  int async_engine_count;
  int unified_addressing;
  int memory_clock_rate;
  int memory_bus_width;
  int l2_cache_size;
  int persisting_l2_cache_max_size;
  int max_threads_per_multi_processor;
  int stream_priorities_supported;
  int global_l1_cache_supported;
  int local_l1_cache_supported;
  size_t shared_mem_per_multiprocessor;
  int regs_per_multiprocessor;
  int managed_memory;
  int unused_boards[10];
  size_t shared_mem_per_block_optin;
  int unused_pageable[2];
  int max_blocks_per_multi_processor;
  int access_policy_max_window_size;
  size_t reserved_shared_mem_per_block;
  int host_register_supported;
  int unused_registration[3];
  int memory_pools_supported;
  int unused_interop[8];
  int reserved[63];
};
static_assert(offsetof(DeviceProperties, multi_processor_count) == 388);
static_assert(offsetof(DeviceProperties, concurrent_kernels) == 576);
static_assert(offsetof(DeviceProperties, memory_pools_supported) == 744);
static_assert(sizeof(DeviceProperties) == 1032);

int Attribute(CUdevice_attribute attribute, CUdevice device) {
  int value = 0;
  SIMGPU_DRIVER(cuDeviceGetAttribute)(&value, attribute, device);
  return value;
}

}  // namespace

CUresult EnterDevice() {
  CUcontext current = nullptr;
  CUresult result = SIMGPU_DRIVER(cuInit)(0);
  if (result == CUDA_SUCCESS) result = SIMGPU_DRIVER(cuCtxGetCurrent)(&current);
  if (result != CUDA_SUCCESS || current) return result;
  result = SIMGPU_DRIVER(cuDevicePrimaryCtxRetain)(&current, chosen_device);
  return result == CUDA_SUCCESS ? SIMGPU_DRIVER(cuCtxSetCurrent)(current) : result;
}

RuntimeError Finish(CUresult result) {
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY) last_error = result;
  return result;
}

}  // namespace simgpu

using simgpu::Finish;
using simgpu::RuntimeError;

SIMGPU_API RuntimeError cudaGetLastError() {
  const RuntimeError error = simgpu::last_error;
  simgpu::last_error = CUDA_SUCCESS;
  return error;
}

SIMGPU_API RuntimeError cudaPeekAtLastError() { return simgpu::last_error; }

SIMGPU_API const char* cudaGetErrorName(RuntimeError error) {
  const char* text = "unknown CUDA error";
  SIMGPU_DRIVER(cuGetErrorName)(static_cast<CUresult>(error), &text);
  return text;
}

SIMGPU_API const char* cudaGetErrorString(RuntimeError error) {
  const char* text = "unknown CUDA error";
  SIMGPU_DRIVER(cuGetErrorString)(static_cast<CUresult>(error), &text);
  return text;
}

SIMGPU_API RuntimeError cudaRuntimeGetVersion(int* version) {
  *version = simgpu::kRuntimeVersion;
  return 0;
}

SIMGPU_API RuntimeError cudaDriverGetVersion(int* version) {
  return Finish(SIMGPU_DRIVER(cuDriverGetVersion)(version));
}

SIMGPU_API RuntimeError cudaGetDeviceCount(int* count) {
  const CUresult result = SIMGPU_DRIVER(cuInit)(0);
  return Finish(result == CUDA_SUCCESS ? SIMGPU_DRIVER(cuDeviceGetCount)(count) : result);
}

SIMGPU_API RuntimeError cudaGetDevice(int* device) {
  CUcontext current = nullptr;
  SIMGPU_DRIVER(cuCtxGetCurrent)(&current);
  if (current) return Finish(SIMGPU_DRIVER(cuCtxGetDevice)(device));
  *device = simgpu::chosen_device;
  return 0;
}

SIMGPU_API RuntimeError cudaSetDevice(int device) {
  CUcontext context = nullptr;
  CUresult result = SIMGPU_DRIVER(cuInit)(0);
  if (result == CUDA_SUCCESS) {
    result = SIMGPU_DRIVER(cuDevicePrimaryCtxRetain)(&context, device);
  }
  if (result == CUDA_SUCCESS) result = SIMGPU_DRIVER(cuCtxSetCurrent)(context);
  if (result == CUDA_SUCCESS) simgpu::chosen_device = device;
  return Finish(result);
}

SIMGPU_API RuntimeError cudaDeviceSynchronize() {
  const CUresult result = simgpu::EnterDevice();
  return Finish(result == CUDA_SUCCESS ? SIMGPU_DRIVER(cuCtxSynchronize)() : result);
}

SIMGPU_API RuntimeError cudaDeviceGetAttribute(int* value, CUdevice_attribute attribute,
                                               int device) {
  return Finish(SIMGPU_DRIVER(cuDeviceGetAttribute)(value, attribute, device));
}

SIMGPU_API RuntimeError cudaDeviceGetPCIBusId(char* text, int length, int device) {
  return Finish(SIMGPU_DRIVER(cuDeviceGetPCIBusId)(text, length, device));
}

SIMGPU_API RuntimeError cudaDeviceCanAccessPeer(int* possible, int device, int peer) {
  return Finish(SIMGPU_DRIVER(cuDeviceCanAccessPeer)(possible, device, peer));
}

SIMGPU_API RuntimeError cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  CUcontext context = nullptr;
  CUresult result = simgpu::EnterDevice();
  if (result == CUDA_SUCCESS) result = SIMGPU_DRIVER(cuDevicePrimaryCtxRetain)(&context, peer);
  return Finish(result == CUDA_SUCCESS ? SIMGPU_DRIVER(cuCtxEnablePeerAccess)(context, flags)
                                       : result);
}

SIMGPU_API RuntimeError cudaGetDeviceProperties_v2(simgpu::DeviceProperties* properties,
                                                   int device) {
  using simgpu::Attribute;
  std::memset(properties, 0, sizeof *properties);
  const CUresult result = SIMGPU_DRIVER(cuDeviceGetName)(
      properties->name, static_cast<int>(sizeof properties->name), device);
  if (result != CUDA_SUCCESS) return Finish(result);
  SIMGPU_DRIVER(cuDeviceTotalMem)(&properties->total_global_mem, device);
  const struct {
    int* field;
    CUdevice_attribute attribute;
  } integers[] = {
      {&properties->regs_per_block, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK},
      {&properties->warp_size, CU_DEVICE_ATTRIBUTE_WARP_SIZE},
      {&properties->max_threads_per_block, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK},
      {&properties->max_threads_dim[0], CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X},
      {&properties->max_threads_dim[1], CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y},
      {&properties->max_threads_dim[2], CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z},
      {&properties->max_grid_size[0], CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X},
      {&properties->max_grid_size[1], CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y},
      {&properties->max_grid_size[2], CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z},
      {&properties->clock_rate, CU_DEVICE_ATTRIBUTE_CLOCK_RATE},
      {&properties->major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
      {&properties->minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
      {&properties->multi_processor_count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
      {&properties->concurrent_kernels, CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS},
      {&properties->pci_bus_id, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID},
      {&properties->pci_device_id, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID},
      {&properties->async_engine_count, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT},
      {&properties->unified_addressing, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING},
      {&properties->memory_clock_rate, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE},
      {&properties->memory_bus_width, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH},
      {&properties->l2_cache_size, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE},
      {&properties->max_threads_per_multi_processor,
       CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR},
      {&properties->regs_per_multiprocessor, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR},
      {&properties->max_blocks_per_multi_processor,
       CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR},
      {&properties->memory_pools_supported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED},
  };
  for (const auto& integer : integers) *integer.field = Attribute(integer.attribute, device);
  properties->shared_mem_per_block =
      Attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, device);
  properties->shared_mem_per_block_optin =
      Attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device);
  properties->shared_mem_per_multiprocessor =
      Attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, device);
  properties->total_const_mem = Attribute(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, device);
  properties->texture_alignment = Attribute(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, device);
  return 0;
}

// The third number of the answer is 0 if the driver has the function and 1 if it has not.
SIMGPU_API RuntimeError cudaGetDriverEntryPointByVersion(const char* name, void** function,
                                                         unsigned version, unsigned long long flags,
                                                         int* answer) {
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  *function = nullptr;
  SIMGPU_DRIVER(cuGetProcAddress)(name, function, static_cast<int>(version), flags, &found);
  if (answer) *answer = *function ? 0 : 1;
  return 0;
}

SIMGPU_API RuntimeError cudaGetDriverEntryPoint(const char* name, void** function,
                                                unsigned long long flags, int* answer) {
  return cudaGetDriverEntryPointByVersion(name, function, simgpu::kRuntimeVersion, flags, answer);
}
