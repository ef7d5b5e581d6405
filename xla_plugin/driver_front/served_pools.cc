// The default pools of the devices, whose place the arenas take. Pools that somebody makes have
// rules of their own (sizes, sharing with other processes) and stay the driver's.
#include "allocator/thimble.h"
#include "xla_plugin/driver_front/front.h"
#include "xla_plugin/driver_front/real_driver.h"
#include "xla_plugin/driver_front/served.h"

namespace thimble::xla {
namespace {

// The device whose arena stands for `pool`; nullptr if none does (yet).
Device* Served(CUmemoryPool pool) {
  const Front& front = Front::Get();
  Device* const device = front.on() ? front.DeviceOfPool(pool) : nullptr;
  return device != nullptr && device->arena() != nullptr ? device : nullptr;
}

}  // namespace

// The release threshold of a pool whose place an arena takes is none: the arena keeps what it has
// until somebody trims it or runs out of memory. XLA asks for it to preallocate as much, which is
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

// All but the peaks is told to the driver's pool, which stays empty.
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

// The driver is told as well: cuMemPoolGetAccess asks it.
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

// --- Whose pool is a device's default ------------------------------------------------------------

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

// If it was in the place of a default pool, that one is back.
CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  return Serve([&] {
    const CUresult result = Real().cuMemPoolDestroy(pool);
    Front::Get().UpdateDefaultPools();
    return result;
  });
}

}  // namespace thimble::xla
