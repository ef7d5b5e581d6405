// The state of the front. Off: every call goes to the driver. On: the arenas of all devices replace
// the driver's default pools. The front starts off, and stays off if anything is wrong.
//
// It is never destroyed: the operating system takes all memory back when the process ends, and
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

  // Each returns "" or what is wrong. Call Open() once, then Start() once.
  std::string Open(const std::string& driver);
  std::string Start(const std::string& conf, const JaxOptions& jax);

  // The part of a device that its arena may take, the smallest of all devices.
  double fraction() const;

  bool on() const { return on_.load(std::memory_order_acquire); }

  // The functions below need a front that is on. They return a nullptr device if the driver should
  // serve the call.
  Device* DeviceOf(int ordinal) const;
  Device* DeviceOfContext() const;  // the current one
  Device* DeviceOfPool(CUmemoryPool pool) const;
  Device* DeviceOfAddress(CUdeviceptr address) const;  // the one whose arena reserved it
  const std::vector<std::unique_ptr<Device>>& devices() const { return devices_; }

  // To be called when a program may have replaced or restored a default pool. Does nothing if the
  // front is off.
  void UpdateDefaultPools();

  // The device and context of `stream`. Asks the driver once per stream; for a default stream,
  // which belongs to the current context, it asks for that context every time.
  Owner OwnerOf(CUstream stream);
  // The same for Device::Allocate() and Free(), which do not need all streams.
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
