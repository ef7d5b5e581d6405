// The device that every policy is measured on: a host driver of a given capacity behind a cost
// driver and a stopwatch. So the same code counts capacity, reserved bytes, driver calls and their
// modelled time for all policies, and the oracle asks the device, not the policy, which physical
// bytes are behind an address.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "allocator/driver/host_driver.h"
#include "tests/bench/timed_driver.h"
#include "tests/drivers/cost_driver.h"

namespace thimble::bench {

class Device {
 public:
  // Stops the process if the machine cannot make a host driver, because nothing can be measured
  // then.
  explicit Device(Bytes capacity);

  Driver& driver() { return timed_; }

  Bytes reserved_bytes() const;
  std::uint64_t driver_calls() const { return cost_.total_calls(); }
  double modelled_us() const { return cost_.virtual_us(); }
  const DriverTime& driver_time() const { return timed_.spent(); }

  // The physical bytes behind [address, address + bytes); an error unless all of them are mapped.
  absl::StatusOr<std::vector<FileRange>> PhysicalRanges(Address address, Bytes bytes) const {
    return host_->TranslateRange(address, bytes);
  }

 private:
  const std::unique_ptr<HostDriver> host_;
  CostDriver cost_;
  TimedDriver timed_;
};

}  // namespace thimble::bench
