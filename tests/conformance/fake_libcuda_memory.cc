// The fake libcuda, part 2: cuMem*. The rules are HostDriver's; what cuda.h has beyond the twelve
// calls (offsets, flags, properties, descriptors) is refused here wherever cuda.h says so.
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "tests/conformance/fake_libcuda_state.h"

using thimble::ChunkHandle;
using thimble::MutexLock;
using thimble::fake_cuda::CurrentDevice;
using thimble::fake_cuda::Device;
using thimble::fake_cuda::Exported;
using thimble::fake_cuda::GetState;
using thimble::fake_cuda::ToResult;

namespace {

unsigned long InodeOf(int descriptor) {
  struct stat info {};
  return fstat(descriptor, &info) == 0 ? info.st_ino : 0;
}

bool IsClosedByAll(const Exported& one) {
  pollfd end = {one.read_end, 0, 0};
  return poll(&end, 1, 0) == 1 && (end.revents & POLLHUP) != 0;
}

// Gives up the references of descriptors that nobody has open any more.
void SweepExports(Device& device) {
  std::vector<Exported> closed;
  {
    MutexLock lock(&GetState().mutex);
    const auto dead = std::partition(device.exports.begin(), device.exports.end(),
                                     [](const Exported& one) { return !IsClosedByAll(one); });
    closed.assign(dead, device.exports.end());
    device.exports.erase(dead, device.exports.end());
  }
  for (const Exported& one : closed) {
    close(one.read_end);
    device.memory->Destroy(one.reference).IgnoreError();
  }
}

bool IsDeviceMemory(const CUmemAllocationProp& properties) {
  return properties.type == CU_MEM_ALLOCATION_TYPE_PINNED &&
         properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE;
}

bool IsShareable(Device& device, ChunkHandle chunk) {
  MutexLock lock(&GetState().mutex);
  return device.shareable.count(chunk) == 1;
}

}  // namespace

extern "C" {

CUresult cuMemGetAllocationGranularity(std::size_t* granularity, const CUmemAllocationProp* prop,
                                       CUmemAllocationGranularity_flags option) {
  FAKE_CUDA_ENTER("cuMemGetAllocationGranularity device=", prop->location.id,
                  " handle_types=", static_cast<int>(prop->requestedHandleTypes),
                  " option=", static_cast<int>(option));
  if (!IsDeviceMemory(*prop)) return CUDA_ERROR_INVALID_VALUE;
  *granularity = GetState().controls.granularity;
  return CUDA_SUCCESS;
}

CUresult cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* total_bytes) {
  FAKE_CUDA_ENTER("cuMemGetInfo");
  Device* const device = CurrentDevice();
  if (device == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  SweepExports(*device);
  const thimble::MemoryInfo info = device->memory->GetMemoryInfo().value();
  *free_bytes = info.free_bytes;
  *total_bytes = info.total_bytes;
  return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr* address, std::size_t size, std::size_t alignment,
                             CUdeviceptr hint, unsigned long long flags) {
  FAKE_CUDA_ENTER("cuMemAddressReserve size=", size, " alignment=", alignment, " hint=", hint,
                  " flags=", flags);
  Device* const device = CurrentDevice();
  if (device == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const auto reserved = device->memory->Reserve(size, alignment);
  if (reserved.ok()) *address = *reserved;
  return ToResult(reserved.status());
}

CUresult cuMemAddressFree(CUdeviceptr address, std::size_t size) {
  FAKE_CUDA_ENTER("cuMemAddressFree size=", size);
  Device* const device = CurrentDevice();
  if (device == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return ToResult(device->memory->Release(address, size));
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t size,
                     const CUmemAllocationProp* prop, unsigned long long flags) {
  FAKE_CUDA_ENTER("cuMemCreate size=", size, " device=", prop->location.id,
                  " handle_types=", static_cast<int>(prop->requestedHandleTypes), " flags=", flags);
  Device* const device = CurrentDevice();
  if (device == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (flags != 0 || !IsDeviceMemory(*prop) || prop->location.id != device->context.device) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  SweepExports(*device);
  const auto chunk = device->memory->Create(size);
  if (!chunk.ok()) return ToResult(chunk.status());
  *handle = static_cast<CUmemGenericAllocationHandle>(*chunk);
  if (prop->requestedHandleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
    MutexLock lock(&GetState().mutex);
    device->shareable.insert(*chunk);
  }
  return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  FAKE_CUDA_ENTER("cuMemRelease");
  Device* const device = CurrentDevice();
  if (device == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return ToResult(device->memory->Destroy(ChunkHandle{handle}));
}

CUresult cuMemMap(CUdeviceptr address, std::size_t size, std::size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags) {
  FAKE_CUDA_ENTER("cuMemMap size=", size, " offset=", offset, " flags=", flags);
  Device* const device = CurrentDevice();
  if (device == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (offset != 0 || flags != 0) return CUDA_ERROR_INVALID_VALUE;  // R1
  return ToResult(device->memory->Map(address, size, ChunkHandle{handle}));
}

CUresult cuMemUnmap(CUdeviceptr address, std::size_t size) {
  FAKE_CUDA_ENTER("cuMemUnmap size=", size);
  Device* const device = CurrentDevice();
  if (device == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return ToResult(device->memory->Unmap(address, size));
}

CUresult cuMemSetAccess(CUdeviceptr address, std::size_t size, const CUmemAccessDesc* access,
                        std::size_t count) {
  std::string who;
  for (std::size_t i = 0; i < count; ++i) {
    absl::StrAppend(&who, " ", access[i].location.id, ":", static_cast<int>(access[i].flags));
  }
  FAKE_CUDA_ENTER("cuMemSetAccess size=", size, " access=", who);
  Device* const device = CurrentDevice();
  if (device == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (count == 0 || access[0].location.id != device->context.device) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return ToResult(device->memory->SetAccess(address, size));
}

CUresult cuMemExportToShareableHandle(void* descriptor, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags) {
  FAKE_CUDA_ENTER("cuMemExportToShareableHandle type=", static_cast<int>(type));
  Device* const device = CurrentDevice();
  if (device == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || flags != 0 ||
      !IsShareable(*device, ChunkHandle{handle})) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const auto reference = device->memory->Share(ChunkHandle{handle});
  if (!reference.ok()) return ToResult(reference.status());
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
  MutexLock lock(&GetState().mutex);
  device->exports.push_back({ends[0], InodeOf(ends[0]), *reference});
  *static_cast<int*>(descriptor) = ends[1];
  return CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* descriptor,
                                        CUmemAllocationHandleType type) {
  FAKE_CUDA_ENTER("cuMemImportFromShareableHandle type=", static_cast<int>(type));
  Device* const device = CurrentDevice();
  if (device == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  const unsigned long inode =
      InodeOf(static_cast<int>(reinterpret_cast<std::intptr_t>(descriptor)));
  ChunkHandle reference{};
  {
    MutexLock lock(&GetState().mutex);
    const auto found = std::find_if(device->exports.begin(), device->exports.end(),
                                    [inode](const Exported& one) { return one.inode == inode; });
    if (found == device->exports.end()) return CUDA_ERROR_INVALID_VALUE;
    reference = found->reference;
  }
  const auto imported = device->memory->Share(reference);
  if (imported.ok()) *handle = static_cast<CUmemGenericAllocationHandle>(*imported);
  return ToResult(imported.status());
}

}  // extern "C"
