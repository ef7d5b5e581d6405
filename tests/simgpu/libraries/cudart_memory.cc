// libcudart.so.12: memory. Every call becomes the driver's call of the same meaning, so that the
// driver's accounts and checks, and any library in front of the driver, see all memory.
#include "tests/simgpu/libraries/cudart.h"

using simgpu::DevicePointer;
using simgpu::Finish;
using simgpu::RuntimeError;

namespace {

enum class CopyKind { kHostToHost, kHostToDevice, kDeviceToHost, kDeviceToDevice, kDefault };

struct PointerAttributes {
  int type;  // 0 not CUDA's, 1 host, 2 device, 3 managed
  int device;
  void* device_pointer;
  void* host_pointer;
};

// Calls `function` in the context of the thread's device.
template <typename Function, typename... Arguments>
RuntimeError InDevice(const Function& function, Arguments... arguments) {
  const CUresult result = simgpu::EnterDevice();
  return Finish(result == CUDA_SUCCESS ? function(arguments...) : result);
}

CUdeviceptr* Out(void** pointer) { return reinterpret_cast<CUdeviceptr*>(pointer); }

}  // namespace

SIMGPU_API RuntimeError cudaMalloc(void** pointer, size_t bytes) {
  return InDevice(SIMGPU_DRIVER(cuMemAlloc), Out(pointer), bytes);
}

SIMGPU_API RuntimeError cudaFree(void* pointer) {
  // Programs call cudaFree(nullptr) only to make the context.
  if (!pointer) return Finish(simgpu::EnterDevice());
  return InDevice(SIMGPU_DRIVER(cuMemFree), DevicePointer(pointer));
}

SIMGPU_API RuntimeError cudaMallocManaged(void** pointer, size_t bytes, unsigned flags) {
  return InDevice(SIMGPU_DRIVER(cuMemAllocManaged), Out(pointer), bytes, flags);
}

SIMGPU_API RuntimeError cudaMallocAsync(void** pointer, size_t bytes, CUstream stream) {
  return InDevice(SIMGPU_DRIVER(cuMemAllocAsync), Out(pointer), bytes, stream);
}

SIMGPU_API RuntimeError cudaMallocFromPoolAsync(void** pointer, size_t bytes, CUmemoryPool pool,
                                                CUstream stream) {
  return InDevice(SIMGPU_DRIVER(cuMemAllocFromPoolAsync), Out(pointer), bytes, pool, stream);
}

SIMGPU_API RuntimeError cudaFreeAsync(void* pointer, CUstream stream) {
  return InDevice(SIMGPU_DRIVER(cuMemFreeAsync), DevicePointer(pointer), stream);
}

SIMGPU_API RuntimeError cudaHostAlloc(void** pointer, size_t bytes, unsigned flags) {
  return InDevice(SIMGPU_DRIVER(cuMemHostAlloc), pointer, bytes, flags);
}

SIMGPU_API RuntimeError cudaMallocHost(void** pointer, size_t bytes) {
  return cudaHostAlloc(pointer, bytes, 0);
}

SIMGPU_API RuntimeError cudaFreeHost(void* pointer) {
  return pointer ? InDevice(SIMGPU_DRIVER(cuMemFreeHost), pointer) : 0;
}

SIMGPU_API RuntimeError cudaHostRegister(void* pointer, size_t bytes, unsigned flags) {
  return InDevice(SIMGPU_DRIVER(cuMemHostRegister), pointer, bytes, flags);
}

SIMGPU_API RuntimeError cudaHostUnregister(void* pointer) {
  return InDevice(SIMGPU_DRIVER(cuMemHostUnregister), pointer);
}

SIMGPU_API RuntimeError cudaHostGetDevicePointer(void** device, void* host, unsigned flags) {
  return InDevice(SIMGPU_DRIVER(cuMemHostGetDevicePointer), Out(device), host, flags);
}

SIMGPU_API RuntimeError cudaMemGetInfo(size_t* free, size_t* total) {
  return InDevice(SIMGPU_DRIVER(cuMemGetInfo), free, total);
}

SIMGPU_API RuntimeError cudaMemcpyAsync(void* to, const void* from, size_t bytes, CopyKind kind,
                                        CUstream stream) {
  switch (kind) {
    case CopyKind::kHostToDevice:
      return InDevice(SIMGPU_DRIVER(cuMemcpyHtoDAsync), DevicePointer(to), from, bytes, stream);
    case CopyKind::kDeviceToHost:
      return InDevice(SIMGPU_DRIVER(cuMemcpyDtoHAsync), to, DevicePointer(from), bytes, stream);
    case CopyKind::kDeviceToDevice:
      return InDevice(SIMGPU_DRIVER(cuMemcpyDtoDAsync), DevicePointer(to), DevicePointer(from),
                      bytes, stream);
    case CopyKind::kHostToHost:
    case CopyKind::kDefault:
      return InDevice(SIMGPU_DRIVER(cuMemcpyAsync), DevicePointer(to), DevicePointer(from), bytes,
                      stream);
  }
  return Finish(CUDA_ERROR_INVALID_VALUE);
}

SIMGPU_API RuntimeError cudaMemcpy(void* to, const void* from, size_t bytes, CopyKind kind) {
  switch (kind) {
    case CopyKind::kHostToDevice:
      return InDevice(SIMGPU_DRIVER(cuMemcpyHtoD), DevicePointer(to), from, bytes);
    case CopyKind::kDeviceToHost:
      return InDevice(SIMGPU_DRIVER(cuMemcpyDtoH), to, DevicePointer(from), bytes);
    case CopyKind::kDeviceToDevice:
      return InDevice(SIMGPU_DRIVER(cuMemcpyDtoD), DevicePointer(to), DevicePointer(from), bytes);
    case CopyKind::kHostToHost:
    case CopyKind::kDefault:
      return InDevice(SIMGPU_DRIVER(cuMemcpy), DevicePointer(to), DevicePointer(from), bytes);
  }
  return Finish(CUDA_ERROR_INVALID_VALUE);
}

SIMGPU_API RuntimeError cudaMemcpyPeerAsync(void* to, int to_device, const void* from,
                                            int from_device, size_t bytes, CUstream stream) {
  CUcontext contexts[2] = {};
  const auto& retain = SIMGPU_DRIVER(cuDevicePrimaryCtxRetain);
  CUresult result = retain(&contexts[0], to_device);
  if (result == CUDA_SUCCESS) result = retain(&contexts[1], from_device);
  if (result != CUDA_SUCCESS) return Finish(result);
  return InDevice(SIMGPU_DRIVER(cuMemcpyPeerAsync), DevicePointer(to), contexts[0],
                  DevicePointer(from), contexts[1], bytes, stream);
}

SIMGPU_API RuntimeError cudaMemset(void* pointer, int value, size_t bytes) {
  return InDevice(SIMGPU_DRIVER(cuMemsetD8), DevicePointer(pointer),
                  static_cast<unsigned char>(value), bytes);
}

SIMGPU_API RuntimeError cudaMemsetAsync(void* pointer, int value, size_t bytes, CUstream stream) {
  return InDevice(SIMGPU_DRIVER(cuMemsetD8Async), DevicePointer(pointer),
                  static_cast<unsigned char>(value), bytes, stream);
}

SIMGPU_API RuntimeError cudaPointerGetAttributes(PointerAttributes* attributes,
                                                 const void* pointer) {
  *attributes = {};
  const auto& query = SIMGPU_DRIVER(cuPointerGetAttribute);
  unsigned type = 0;
  const CUdeviceptr address = DevicePointer(pointer);
  if (query(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) != CUDA_SUCCESS) return 0;
  int managed = 0;
  query(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address);
  attributes->type = managed ? 3 : static_cast<int>(type);
  query(&attributes->device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address);
  attributes->device_pointer = const_cast<void*>(pointer);
  if (type == CU_MEMORYTYPE_HOST || managed) attributes->host_pointer = attributes->device_pointer;
  return 0;
}
