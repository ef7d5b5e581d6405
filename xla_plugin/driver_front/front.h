// The state of the front: off, where every call goes to the driver, or on, where the arenas of all
// devices take the place of the driver's default pools. Off is where it starts, and stays if
// anything is wrong.
//
// It is never destroyed: when the process ends, the operating system takes all memory back, and
// libraries that end later may still free theirs.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "xla_plugin/driver_front/cuda_abi.h"
#include "xla_plugin/driver_front/device.h"
#include "xla_plugin/driver_front/handle_table.h"
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
  Device* DeviceOfAddress(CUdeviceptr address) const;  // the one whose arena reserved it
  const std::vector<std::unique_ptr<Device>>& devices() const { return devices_; }

  // To be called when somebody may have put a pool in the place of a default one, or taken it away.
  // A front that is off does nothing.
  void UpdateDefaultPools();

  // Where `stream` is. Asks the driver once per stream; for a default stream, which is that of the
  // current context, it asks for this one every time.
  Owner OwnerOf(CUstream stream);
  // The same for Device::Allocate() and Free(), which need not know about all streams.
  LocatedStream Locate(CUstream stream);

  // To be called before streams end or are captured, and before contexts end.
  void Forget(CUstream stream);
  void ForgetIf(const std::function<bool(const Owner&)>& condition);
  const Settings& settings() const { return settings_; }
  LastFailure& failure() { return failure_; }

 private:
  std::string FindDevices();
  Owner OwnerOfCurrentContext();

  std::string driver_;
  Settings settings_;
  LastFailure failure_;
  std::vector<std::unique_ptr<Device>> devices_;  // by ordinal
  HandleTable streams_;
  HandleTable contexts_;
  std::atomic<bool> on_{false};
};

}  // namespace thimble::xla
