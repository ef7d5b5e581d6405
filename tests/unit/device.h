// The small device that unit tests run on: host memory in granules of a page, behind a driver that
// can hold streams and one that can make calls fail.
#pragma once

#include <memory>
#include <string>

#include "allocator/arena/arena.h"
#include "allocator/driver/host_driver.h"
#include "gtest/gtest.h"
#include "tests/drivers/delay_driver.h"
#include "tests/drivers/fault_driver.h"

namespace thimble {

inline constexpr Bytes kGranule = 4 * kKiB;

class Device {
 public:
  explicit Device(Bytes bytes = 64 * kMiB)
      : host_(HostDriver::Open({bytes, kGranule}).value()),
        streams_(*host_, NoDelays()),
        faults_(streams_) {}

  FaultDriver* driver() { return &faults_; }
  DelayDriver& streams() { return streams_; }
  const HostDriver& host() const { return *host_; }

  Bytes used() {
    const MemoryInfo info = host_->GetMemoryInfo().value();
    return info.total_bytes - info.free_bytes;
  }
  // Of one kind, or of all, since the device was made.
  std::uint64_t calls(DriverCall call) const { return faults_.calls().count(call); }
  std::uint64_t calls() const { return faults_.calls().total(); }

 private:
  static DelayOptions NoDelays() {
    DelayOptions options;
    options.calls = {};
    return options;
  }

  std::unique_ptr<HostDriver> host_;
  DelayDriver streams_;
  FaultDriver faults_;
};

// Device memory as this process sees it.
inline volatile std::uint8_t& ByteAt(Address address) {
  return *static_cast<volatile std::uint8_t*>(ToPointer(address));
}

inline std::string MessageOf(const absl::Status& status) { return std::string(status.message()); }

}  // namespace thimble
