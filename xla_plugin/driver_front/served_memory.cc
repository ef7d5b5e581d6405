// cuMemAlloc, cuMemFree and their stream-ordered sisters, and what the driver tells about memory.
#include <algorithm>
#include <optional>

#include "allocator/thimble.h"
#include "xla_plugin/driver_front/front.h"
#include "xla_plugin/driver_front/message.h"
#include "xla_plugin/driver_front/real_driver.h"
#include "xla_plugin/driver_front/served.h"

namespace thimble::xla {
namespace {

// What is allocated while a stream is captured belongs to the graph, which is the driver's. A
// stream that cannot be asked, on a thread without a context say, is not being captured by it.
bool IsCaptured(CUstream stream) {
  int status = kNotCapturing;
  return Real().cuStreamIsCapturing(stream, &status) == kSuccess && status != kNotCapturing;
}

// The device whose arena serves the call; nullptr: the driver does.
Device* Ready(Device* device) {
  return device != nullptr && device->MakeArena() != nullptr ? device : nullptr;
}

// In the calls whose names end in _ptsz, the default stream is that of the thread.
CUstream PerThread(CUstream stream) {
  return stream == nullptr ? reinterpret_cast<CUstream>(kPerThreadStream) : stream;
}

// The arena's free memory is the driver's to give while a library asks it directly.
CUresult AllocateFromDriver(Device* device, CUdeviceptr* pointer, std::size_t bytes) {
  const CUresult result = Real().cuMemAlloc_v2(pointer, bytes);
  if (result != kOutOfMemory || device == nullptr || device->arena() == nullptr) return result;
  const std::uint64_t reserved = device->GetStats().reserved;
  thimble_trim(device->arena(), reserved - std::min<std::uint64_t>(reserved, bytes), nullptr);
  return Real().cuMemAlloc_v2(pointer, bytes);
}

CUresult FreeAsync(CUdeviceptr pointer, CUstream stream) {
  return Serve([&] {
    Front& front = Front::Get();
    if (!front.on() || !front.Find(pointer).has_value()) {
      return Real().cuMemFreeAsync(pointer, stream);
    }
    if (IsCaptured(stream)) return kInvalidValue;  // a graph frees only what it allocated
    return front.Free(pointer, stream).value_or(kInvalidValue);
  });
}

CUresult AllocateFromPool(CUdeviceptr* pointer, std::size_t bytes, CUmemoryPool pool,
                          CUstream stream) {
  return Serve([&] {
    Front& front = Front::Get();
    if (front.on() && pointer != nullptr && bytes > 0 && !IsCaptured(stream)) {
      if (Device* const device = Ready(front.DeviceOfPool(pool))) {
        return front.Allocate(device, bytes, stream, pointer);
      }
    }
    return Real().cuMemAllocFromPoolAsync(pointer, bytes, pool, stream);
  });
}

CUresult AllocateAsync(CUdeviceptr* pointer, std::size_t bytes, CUstream stream) {
  return Serve([&] {
    Front& front = Front::Get();
    if (front.on() && pointer != nullptr && bytes > 0 && !IsCaptured(stream)) {
      if (Device* const device = Ready(front.DeviceOfStream(stream))) {
        return front.Allocate(device, bytes, stream, pointer);
      }
    }
    return Real().cuMemAllocAsync(pointer, bytes, stream);
  });
}

// One attribute of a block; false: the driver knows it.
bool FillAttribute(const HeldBlock& block, int attribute, void* value) {
  switch (attribute) {
    case kRangeStart:
      *static_cast<CUdeviceptr*>(value) = block.address;
      return true;
    case kRangeSize:
      *static_cast<std::size_t*>(value) = block.bytes;
      return true;
    case kPoolHandle:
      *static_cast<CUmemoryPool*>(value) = block.device->identity().pool;
      return true;
    case kIpcCapable:
      *static_cast<int*>(value) = 0;
      return true;
    default:
      return false;
  }
}

}  // namespace

// --- Plain ---------------------------------------------------------------------------------------

CUresult cuMemAlloc_v2(CUdeviceptr* pointer, std::size_t bytes) {
  return Serve([&] {
    Front& front = Front::Get();
    if (!front.on() || pointer == nullptr || bytes == 0)
      return Real().cuMemAlloc_v2(pointer, bytes);
    Device* const device = front.DeviceOfContext();
    if (!front.settings().cumemalloc_from_driver()) {
      if (Device* const ready = Ready(device)) {
        return front.Allocate(ready, bytes, std::nullopt, pointer);
      }
    }
    return AllocateFromDriver(device, pointer, bytes);
  });
}

CUresult cuMemFree_v2(CUdeviceptr pointer) {
  return Serve([&] {
    if (Front::Get().on()) {
      if (const auto result = Front::Get().Free(pointer, std::nullopt)) return *result;
    }
    return Real().cuMemFree_v2(pointer);
  });
}

// --- Stream-ordered ------------------------------------------------------------------------------

CUresult cuMemAllocAsync(CUdeviceptr* pointer, std::size_t bytes, CUstream stream) {
  return AllocateAsync(pointer, bytes, stream);
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr* pointer, std::size_t bytes, CUstream stream) {
  return AllocateAsync(pointer, bytes, PerThread(stream));
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* pointer, std::size_t bytes, CUmemoryPool pool,
                                 CUstream stream) {
  return AllocateFromPool(pointer, bytes, pool, stream);
}

CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* pointer, std::size_t bytes, CUmemoryPool pool,
                                      CUstream stream) {
  return AllocateFromPool(pointer, bytes, pool, PerThread(stream));
}

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) { return FreeAsync(pointer, stream); }

CUresult cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream stream) {
  return FreeAsync(pointer, PerThread(stream));
}

// --- What the driver tells -----------------------------------------------------------------------

// What the arena holds and nobody uses is free to whoever asks here.
CUresult cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* total_bytes) {
  return Serve([&] {
    const CUresult result = Real().cuMemGetInfo_v2(free_bytes, total_bytes);
    Front& front = Front::Get();
    if (result != kSuccess || !front.on() || free_bytes == nullptr) return result;
    const Device* const device = front.DeviceOfContext();
    if (device == nullptr) return result;
    if (device->arena() == nullptr) {
      *free_bytes = std::min(*free_bytes, device->limit());
      return result;
    }
    const thimble_stats stats = device->GetStats();
    const std::uint64_t used = stats.in_use + stats.magazines;
    *free_bytes = std::min(*free_bytes + (stats.reserved - used), stats.limit - used);
    return result;
  });
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr inside) {
  return Serve([&] {
    const Front& front = Front::Get();
    const auto block = front.on() ? front.Find(inside) : std::nullopt;
    if (!block.has_value()) return Real().cuMemGetAddressRange_v2(base, bytes, inside);
    if (base != nullptr) *base = block->address;
    if (bytes != nullptr) *bytes = block->bytes;
    return kSuccess;
  });
}

CUresult cuPointerGetAttribute(void* value, int attribute, CUdeviceptr pointer) {
  return Serve([&] {
    const Front& front = Front::Get();
    if (front.on() && value != nullptr) {
      const auto block = front.Find(pointer);
      if (block.has_value() && FillAttribute(*block, attribute, value)) return kSuccess;
    }
    return Real().cuPointerGetAttribute(value, attribute, pointer);
  });
}

CUresult cuPointerGetAttributes(unsigned count, int* attributes, void** values,
                                CUdeviceptr pointer) {
  return Serve([&] {
    const CUresult result = Real().cuPointerGetAttributes(count, attributes, values, pointer);
    const Front& front = Front::Get();
    const auto block = front.on() && result == kSuccess ? front.Find(pointer) : std::nullopt;
    if (!block.has_value()) return result;
    for (unsigned i = 0; i < count; ++i) FillAttribute(*block, attributes[i], values[i]);
    return result;
  });
}

// A block may be stitched from memory of many owners: no other process shall map that.
CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr pointer) {
  return Serve([&] {
    const Front& front = Front::Get();
    if (!front.on() || !front.Find(pointer).has_value()) {
      return Real().cuIpcGetMemHandle(handle, pointer);
    }
    static const bool said = [] {
      Say("cuIpcGetMemHandle: a block of the arena cannot be mapped by another process. Set "
          "THIMBLE_CONF=cumemalloc:driver to leave the memory of cuMemAlloc to the driver; for "
          "NCCL, NCCL_CUMEM_ENABLE=1 does as well.");
      return true;
    }();
    static_cast<void>(said);
    return kNotSupported;
  });
}

}  // namespace thimble::xla
