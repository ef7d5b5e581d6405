#include "allocator/driver/cuda_driver.h"

#include <fcntl.h>

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/base/status_macros.h"
#include "allocator/driver/cuda_api.h"
#include "allocator/driver/cuda_copy_engines.h"
#include "allocator/driver/cuda_streams.h"

namespace thimble {
namespace {

CUmemAllocationProp ChunkProperties(int device, bool shareable) {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  properties.requestedHandleTypes =
      shareable ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : CU_MEM_HANDLE_TYPE_NONE;
  return properties;
}

absl::StatusOr<CUdevice> FindDevice(const CudaApi& api, int ordinal) {
  int count = 0;
  THIMBLE_RETURN_IF_ERROR(api.ToStatus(api.cuDeviceGetCount(&count), "cuDeviceGetCount"));
  if (ordinal < 0 || ordinal >= count) {
    return absl::InvalidArgumentError(
        absl::StrCat("CUDA device ", ordinal, " does not exist: there are ", count));
  }
  CUdevice device = 0;
  THIMBLE_RETURN_IF_ERROR(api.ToStatus(api.cuDeviceGet(&device, ordinal), "cuDeviceGet"));
  return device;
}

absl::Status RequireAttribute(const CudaApi& api, CUdevice device, CUdevice_attribute attribute,
                              const char* what) {
  int value = 0;
  const CUresult result = api.cuDeviceGetAttribute(&value, attribute, device);
  THIMBLE_RETURN_IF_ERROR(api.ToStatus(result, "cuDeviceGetAttribute"));
  if (value != 0) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("CUDA device ", device, " has no ", what));
}

absl::Status RequirePeer(const CudaApi& api, CUdevice device, int peer) {
  THIMBLE_ASSIGN_OR_RETURN(const CUdevice other, FindDevice(api, peer));
  int can_access = 0;
  const CUresult result = api.cuDeviceCanAccessPeer(&can_access, other, device);
  THIMBLE_RETURN_IF_ERROR(api.ToStatus(result, "cuDeviceCanAccessPeer"));
  if (can_access != 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("CUDA device ", peer, " cannot access the memory of device ", device));
}

absl::StatusOr<DriverProperties> ReadProperties(const CudaApi& api, CUdevice device,
                                                bool shareable) {
  std::array<char, 256> name = {};
  CUresult result = api.cuDeviceGetName(name.data(), static_cast<int>(name.size()), device);
  THIMBLE_RETURN_IF_ERROR(api.ToStatus(result, "cuDeviceGetName"));
  std::size_t total = 0;
  THIMBLE_RETURN_IF_ERROR(
      api.ToStatus(api.cuDeviceTotalMem_v2(&total, device), "cuDeviceTotalMem"));
  const CUmemAllocationProp chunk = ChunkProperties(device, shareable);
  std::size_t granularity = 0;
  result =
      api.cuMemGetAllocationGranularity(&granularity, &chunk, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  THIMBLE_RETURN_IF_ERROR(api.ToStatus(result, "cuMemGetAllocationGranularity"));
  if (!IsPowerOfTwo(granularity)) {
    return absl::InternalError(
        absl::StrCat("cuMemGetAllocationGranularity: ", granularity, " is not a power of two"));
  }
  return DriverProperties{name.data(), granularity, total};
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaDriver>> CudaDriver::Open(const CudaOptions& options) {
  THIMBLE_ASSIGN_OR_RETURN(std::unique_ptr<const CudaApi> api, CudaApi::Load(options.library));
  THIMBLE_RETURN_IF_ERROR(api->ToStatus(api->cuInit(0), "cuInit"));
  THIMBLE_ASSIGN_OR_RETURN(const CUdevice device, FindDevice(*api, options.ordinal));
  THIMBLE_RETURN_IF_ERROR(RequireAttribute(
      *api, device, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
      "virtual memory management: a Pascal or later GPU, not in WDDM mode, is needed"));
  if (options.shareable) {
    THIMBLE_RETURN_IF_ERROR(RequireAttribute(
        *api, device, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
        "file descriptors for memory: it cannot be shareable"));
  }
  for (const int peer : options.peers) THIMBLE_RETURN_IF_ERROR(RequirePeer(*api, device, peer));
  THIMBLE_ASSIGN_OR_RETURN(DriverProperties properties,
                           ReadProperties(*api, device, options.shareable));
  // Last: from here on there is something to give back, and the destructor does it.
  CUcontext context = nullptr;
  THIMBLE_RETURN_IF_ERROR(
      api->ToStatus(api->cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain"));
  return std::unique_ptr<CudaDriver>(
      new CudaDriver(std::move(api), options, std::move(properties), device, context));
}

CudaDriver::CudaDriver(std::unique_ptr<const CudaApi> api, const CudaOptions& options,
                       DriverProperties properties, int device, CUctx_st* context)
    : api_(std::move(api)),
      properties_(std::move(properties)),
      device_(device),
      context_(context),
      shareable_(options.shareable),
      accessors_{device},
      streams_(std::make_unique<CudaStreams>(*api_, context)),
      engines_(std::make_unique<CudaCopyEngines>(*api_, context)) {
  accessors_.insert(accessors_.end(), options.peers.begin(), options.peers.end());
}

CudaDriver::~CudaDriver() {
  {
    const CurrentContext context(*api_, context_);
    // CUDA_ERROR_DEINITIALIZED when the process is ending. Whatever it is, nobody is left to tell,
    // and no further call could do better.
    if (context.result() != CUDA_SUCCESS) return;
    streams_->DestroyEvents();
    engines_->DestroyStreams();
  }
  api_->cuDevicePrimaryCtxRelease_v2(device_);
}

template <typename Function>
absl::Status CudaDriver::Call(const char* name, Function function) const {
  const CurrentContext context(*api_, context_);
  THIMBLE_RETURN_IF_ERROR(context.status());
  return api_->ToStatus(function(), name);
}

absl::StatusOr<Address> CudaDriver::Reserve(Bytes bytes, Bytes alignment) {
  CUdeviceptr address = 0;
  THIMBLE_RETURN_IF_ERROR(Call("cuMemAddressReserve", [&] {
    return api_->cuMemAddressReserve(&address, bytes, alignment, /*addr=*/0, /*flags=*/0);
  }));
  return Address(address);
}

absl::Status CudaDriver::Release(Address address, Bytes bytes) {
  return Call("cuMemAddressFree", [&] { return api_->cuMemAddressFree(ToCuda(address), bytes); });
}

absl::StatusOr<ChunkHandle> CudaDriver::Create(Bytes bytes) {
  const CUmemAllocationProp properties = ChunkProperties(device_, shareable_);
  CUmemGenericAllocationHandle handle = 0;
  THIMBLE_RETURN_IF_ERROR(Call(
      "cuMemCreate", [&] { return api_->cuMemCreate(&handle, bytes, &properties, /*flags=*/0); }));
  return ChunkHandle{handle};
}

absl::Status CudaDriver::Destroy(ChunkHandle chunk) {
  return Call("cuMemRelease",
              [&] { return api_->cuMemRelease(static_cast<std::uint64_t>(chunk)); });
}

absl::Status CudaDriver::Map(Address address, Bytes bytes, ChunkHandle chunk) {
  return Call("cuMemMap", [&] {
    return api_->cuMemMap(ToCuda(address), bytes, /*offset=*/0, static_cast<std::uint64_t>(chunk),
                          /*flags=*/0);
  });
}

absl::Status CudaDriver::Unmap(Address address, Bytes bytes) {
  return Call("cuMemUnmap", [&] { return api_->cuMemUnmap(ToCuda(address), bytes); });
}

absl::Status CudaDriver::SetAccess(Address address, Bytes bytes) {
  std::vector<CUmemAccessDesc> access(accessors_.size());
  for (std::size_t i = 0; i < access.size(); ++i) {
    access[i].location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access[i].location.id = accessors_[i];
    access[i].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  }
  return Call("cuMemSetAccess", [&] {
    return api_->cuMemSetAccess(ToCuda(address), bytes, access.data(), access.size());
  });
}

absl::Status CudaDriver::Copy(Address device, void* host, Bytes bytes, CopyDirection direction) {
  return engines_->Copy(device, host, bytes, direction);
}

absl::Status CudaDriver::PinHost(void* host, Bytes bytes) {
  return Call("cuMemHostRegister",
              [&] { return api_->cuMemHostRegister_v2(host, bytes, /*Flags=*/0); });
}

absl::Status CudaDriver::UnpinHost(void* host) {
  return Call("cuMemHostUnregister", [&] { return api_->cuMemHostUnregister(host); });
}

absl::StatusOr<StreamSeq> CudaDriver::Record(StreamId stream) { return streams_->Record(stream); }

absl::StatusOr<bool> CudaDriver::Passed(StreamId stream, StreamSeq point) {
  return streams_->Passed(stream, point);
}

absl::Status CudaDriver::Wait(StreamId stream, StreamSeq point) {
  return streams_->Wait(stream, point);
}

absl::StatusOr<MemoryInfo> CudaDriver::GetMemoryInfo() {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  THIMBLE_RETURN_IF_ERROR(
      Call("cuMemGetInfo", [&] { return api_->cuMemGetInfo_v2(&free_bytes, &total_bytes); }));
  return MemoryInfo{free_bytes, total_bytes};
}

absl::StatusOr<int> CudaDriver::Export(ChunkHandle chunk) {
  int descriptor = -1;
  THIMBLE_RETURN_IF_ERROR(Call("cuMemExportToShareableHandle", [&] {
    return api_->cuMemExportToShareableHandle(&descriptor, static_cast<std::uint64_t>(chunk),
                                              CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                              /*flags=*/0);
  }));
  fcntl(descriptor, F_SETFD, FD_CLOEXEC);  // whoever shall have it gets it by SCM_RIGHTS
  return descriptor;
}

absl::StatusOr<ChunkHandle> CudaDriver::Import(int descriptor) {
  CUmemGenericAllocationHandle handle = 0;
  THIMBLE_RETURN_IF_ERROR(Call("cuMemImportFromShareableHandle", [&] {
    return api_->cuMemImportFromShareableHandle(
        &handle, reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor)),
        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  }));
  return ChunkHandle{handle};
}

}  // namespace thimble
