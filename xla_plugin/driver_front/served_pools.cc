// The devices' default pools, which the arenas replace. Pools that a program creates have their own
// rules (sizes, sharing with other processes), so the driver serves them.
#include "allocator/thimble.h"
#include "xla_plugin/driver_front/front.h"
#include "xla_plugin/driver_front/real_driver.h"
#include "xla_plugin/driver_front/served.h"

namespace thimble::xla {
namespace {

// The device whose arena replaces `pool`; nullptr if none does (yet).
Device* Served(CUmemoryPool pool) {
  const Front& front = Front::Get();
  Device* const device = front.on() ? front.DeviceOfPool(pool) : nullptr;
  return device != nullptr && device->arena() != nullptr ? device : nullptr;
}

}  // namespace

// A pool that an arena replaces has a release threshold of 0: the arena keeps its memory until
// somebody trims it or runs out of memory. XLA would preallocate up to the threshold, but that is
// the arena's work (Settings).
CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void* value) {
  return Serve([&] {
    const Front& front = Front::Get();
    if (attribute == kReleaseThreshold && value != nullptr && front.on() &&
        front.DeviceOfPool(pool) != nullptr) {
      *static_cast<std::uint64_t*>(value) = 0;
      return kSuccess;
    }
    const Device* const device = value == nullptr ? nullptr : Served(pool);
    if (device == nullptr) return Real().cuMemPoolGetAttribute(pool, attribute, value);
    const thimble_stats stats = device->GetStats();
    auto* const bytes = static_cast<std::uint64_t*>(value);
    switch (attribute) {
      case kReservedCurrent:
        *bytes = stats.reserved;
        return kSuccess;
      case kReservedHigh:
        *bytes = stats.peak_reserved;
        return kSuccess;
      case kUsedCurrent:
        *bytes = stats.in_use;
        return kSuccess;
      case kUsedHigh:
        *bytes = stats.peak_in_use;
        return kSuccess;
      default:
        return Real().cuMemPoolGetAttribute(pool, attribute, value);
    }
  });
}

// Except for the peaks, attributes are set on the driver's pool, which stays empty.
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void* value) {
  return Serve([&] {
    const Device* const device = Served(pool);
    const bool is_peak = attribute == kReservedHigh || attribute == kUsedHigh;
    if (device == nullptr || !is_peak || value == nullptr) {
      return Real().cuMemPoolSetAttribute(pool, attribute, value);
    }
    if (*static_cast<std::uint64_t*>(value) != 0) return kInvalidValue;
    thimble_reset_peaks(device->arena());
    return kSuccess;
  });
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, std::size_t keep_bytes) {
  return Serve([&] {
    const Device* const device = Served(pool);
    if (device == nullptr) return Real().cuMemPoolTrimTo(pool, keep_bytes);
    return thimble_trim(device->arena(), keep_bytes, nullptr) == THIMBLE_OK ? kSuccess : kUnknown;
  });
}

// Set it in the driver as well, because cuMemPoolGetAccess asks the driver.
CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* map, std::size_t count) {
  return Serve([&] {
    const Front& front = Front::Get();
    Device* const device = front.on() ? front.DeviceOfPool(pool) : nullptr;
    for (std::size_t i = 0; device != nullptr && map != nullptr && i < count; ++i) {
      if (map[i].location.type != kLocationDevice || map[i].flags != kAccessReadWrite) continue;
      const CUresult result = device->AddPeer(map[i].location.id);
      if (result != kSuccess) return result;
    }
    return Real().cuMemPoolSetAccess(pool, map, count);
  });
}

// --- The default pool of a device ------------------------------------------------------------

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
  return Serve([&] {
    const CUresult result = Real().cuDeviceSetMemPool(device, pool);
    Front::Get().UpdateDefaultPools();
    return result;
  });
}

CUresult cuMemSetMemPool(CUmemLocation* location, int type, CUmemoryPool pool) {
  return Serve([&] {
    const CUresult result = Real().cuMemSetMemPool(location, type, pool);
    Front::Get().UpdateDefaultPools();
    return result;
  });
}

// If the pool had replaced a default pool, the default pool is back.
CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  return Serve([&] {
    const CUresult result = Real().cuMemPoolDestroy(pool);
    Front::Get().UpdateDefaultPools();
    return result;
  });
}

}  // namespace thimble::xla
