// The state of the front: off, where every call goes to the driver, or on, where the arenas of all
// devices take the place of the driver's default pools. Off is where it starts, and stays if
// anything is wrong.
//
// It is never destroyed: when the process ends, the operating system takes all memory back, and
// libraries that end later may still free theirs.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "xla_plugin/driver_front/block_table.h"
#include "xla_plugin/driver_front/cuda_abi.h"
#include "xla_plugin/driver_front/device.h"
#include "xla_plugin/driver_front/last_failure.h"
#include "xla_plugin/driver_front/settings.h"

namespace thimble::xla {

class Front {
 public:
  static Front& Get();

  // Each gives "" or what is wrong. Open() first, once; Start() then, once.
  std::string Open(const std::string& driver);
  std::string Start(const std::string& conf, const JaxOptions& jax);

  // The part of a device that arenas may take: the smallest of all devices.
  double fraction() const;

  bool on() const { return on_.load(std::memory_order_acquire); }

  // The rest is for a front that is on. A device is nullptr where the driver shall serve the call.
  Device* DeviceOf(int ordinal) const;
  Device* DeviceOfContext() const;  // the current one
  Device* DeviceOfPool(CUmemoryPool pool) const;
  // The device whose default pool serves cuMemAllocAsync on `stream`.
  Device* DeviceOfStream(CUstream stream) const;
  const std::vector<std::unique_ptr<Device>>& devices() const { return devices_; }

  CUresult Allocate(Device* device, std::size_t bytes, std::optional<CUstream> stream,
                    CUdeviceptr* pointer);
  // Nothing if `pointer` is no block of an arena.
  std::optional<CUresult> Free(CUdeviceptr pointer, std::optional<CUstream> stream);

  std::optional<HeldBlock> Find(CUdeviceptr inside) const { return blocks_.Find(inside); }
  const Settings& settings() const { return settings_; }
  LastFailure& failure() { return failure_; }

 private:
  std::string FindDevices();

  std::string driver_;
  Settings settings_;
  LastFailure failure_;
  std::vector<std::unique_ptr<Device>> devices_;  // by ordinal
  BlockTable blocks_;
  std::atomic<bool> on_{false};
};

}  // namespace thimble::xla
