// cuMemAlloc, cuMemFree, their stream-ordered variants, and queries about memory.
#include <algorithm>
#include <optional>

#include "allocator/thimble.h"
#include "xla_plugin/driver_front/front.h"
#include "xla_plugin/driver_front/message.h"
#include "xla_plugin/driver_front/real_driver.h"
#include "xla_plugin/driver_front/served.h"

namespace thimble::xla {
namespace {

// Memory that is allocated while a stream is captured belongs to the graph, so the driver serves
// it. The legacy stream cannot be captured. If the driver cannot answer, for example on a thread
// without a context, this thread is not capturing the stream.
bool IsCaptured(CUstream stream) {
  if (stream == nullptr || reinterpret_cast<std::uintptr_t>(stream) == kLegacyStream) return false;
  int status = kNotCapturing;
  return Real().cuStreamIsCapturing(stream, &status) == kSuccess && status != kNotCapturing;
}

// The device whose arena serves the call; nullptr if the driver serves it.
Device* Ready(Device* device) {
  return device != nullptr && device->MakeArena() != nullptr ? device : nullptr;
}

// In the calls whose names end in _ptsz, the default stream is that of the thread.
CUstream PerThread(CUstream stream) {
  return stream == nullptr ? reinterpret_cast<CUstream>(kPerThreadStream) : stream;
}

// Allocates from the driver. If the driver is out of memory, the arena first gives back what it
// keeps unused.
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
    Device* const device = front.on() ? front.DeviceOfAddress(pointer) : nullptr;
    if (device == nullptr) return Real().cuMemFreeAsync(pointer, stream);
    if (IsCaptured(stream)) return kInvalidValue;  // a graph frees only what it allocated
    return device->Free(pointer, front.Locate(stream));
  });
}

CUresult AllocateFromPool(CUdeviceptr* pointer, std::size_t bytes, CUmemoryPool pool,
                          CUstream stream) {
  return Serve([&] {
    Front& front = Front::Get();
    if (front.on() && pointer != nullptr && bytes > 0 && !IsCaptured(stream)) {
      if (Device* const device = Ready(front.DeviceOfPool(pool))) {
        return device->Allocate(bytes, front.Locate(stream), pointer);
      }
    }
    return Real().cuMemAllocFromPoolAsync(pointer, bytes, pool, stream);
  });
}

CUresult AllocateAsync(CUdeviceptr* pointer, std::size_t bytes, CUstream stream) {
  return Serve([&] {
    Front& front = Front::Get();
    if (front.on() && pointer != nullptr && bytes > 0 && !IsCaptured(stream)) {
      const Owner owner = front.OwnerOf(stream);
      const bool is_ours = owner.device != nullptr && owner.device->serves_by_default();
      if (Device* const device = is_ours ? Ready(owner.device) : nullptr) {
        return device->Allocate(bytes, LocatedStream{stream, owner.context}, pointer);
      }
    }
    return Real().cuMemAllocAsync(pointer, bytes, stream);
  });
}

// The device whose arena holds the block that `inside` points into.
struct Holder {
  const Device* device = nullptr;
  HeldBlock block;
};
std::optional<Holder> FindHolder(CUdeviceptr inside) {
  const Front& front = Front::Get();
  const Device* const device = front.on() ? front.DeviceOfAddress(inside) : nullptr;
  const auto block = device == nullptr ? std::nullopt : device->Find(inside);
  return block.has_value() ? std::optional(Holder{device, *block}) : std::nullopt;
}

// The driver knows the other attributes of a block.
bool IsServed(int attribute) {
  return attribute == kRangeStart || attribute == kRangeSize || attribute == kPoolHandle ||
         attribute == kIpcCapable;
}

void FillServed(const Holder& holder, int attribute, void* value) {
  switch (attribute) {
    case kRangeStart:
      *static_cast<CUdeviceptr*>(value) = holder.block.address;
      return;
    case kRangeSize:
      *static_cast<std::size_t*>(value) = holder.block.bytes;
      return;
    case kPoolHandle:
      *static_cast<CUmemoryPool*>(value) = holder.device->identity().pool;
      return;
    case kIpcCapable:
      *static_cast<int*>(value) = 0;
      return;
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
        return ready->Allocate(bytes, std::nullopt, pointer);
      }
    }
    return AllocateFromDriver(device, pointer, bytes);
  });
}

CUresult cuMemFree_v2(CUdeviceptr pointer) {
  return Serve([&] {
    const Front& front = Front::Get();
    Device* const device = front.on() ? front.DeviceOfAddress(pointer) : nullptr;
    return device != nullptr ? device->Free(pointer, std::nullopt) : Real().cuMemFree_v2(pointer);
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

// --- Queries -----------------------------------------------------------------------

// Memory that the arena holds but nobody uses counts as free.
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
    const auto holder = FindHolder(inside);
    if (!holder.has_value()) return Real().cuMemGetAddressRange_v2(base, bytes, inside);
    if (base != nullptr) *base = holder->block.address;
    if (bytes != nullptr) *bytes = holder->block.bytes;
    return kSuccess;
  });
}

CUresult cuPointerGetAttribute(void* value, int attribute, CUdeviceptr pointer) {
  return Serve([&] {
    const auto holder =
        value != nullptr && IsServed(attribute) ? FindHolder(pointer) : std::nullopt;
    if (!holder.has_value()) return Real().cuPointerGetAttribute(value, attribute, pointer);
    FillServed(*holder, attribute, value);
    return kSuccess;
  });
}

CUresult cuPointerGetAttributes(unsigned count, int* attributes, void** values,
                                CUdeviceptr pointer) {
  return Serve([&] {
    const CUresult result = Real().cuPointerGetAttributes(count, attributes, values, pointer);
    if (result != kSuccess || std::none_of(attributes, attributes + count, IsServed)) return result;
    const auto holder = FindHolder(pointer);
    if (!holder.has_value()) return result;
    for (unsigned i = 0; i < count; ++i) FillServed(*holder, attributes[i], values[i]);
    return result;
  });
}

// A block may be stitched from memory of several owners, so no other process may map it.
CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr pointer) {
  return Serve([&] {
    if (!FindHolder(pointer).has_value()) return Real().cuIpcGetMemHandle(handle, pointer);
    static const bool said = [] {
      Say("cuIpcGetMemHandle: another process cannot map a block of the arena. Set "
          "THIMBLE_CONF=cumemalloc:driver to let the driver serve cuMemAlloc; for NCCL, "
          "NCCL_CUMEM_ENABLE=1 works as well.");
      return true;
    }();
    static_cast<void>(said);
    return kNotSupported;
  });
}

}  // namespace thimble::xla
