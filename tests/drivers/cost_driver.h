// Counts the calls to another driver and says what they would have cost on a GPU, in virtual
// microseconds: it never sleeps. Comparisons of allocators are made in this currency, because the
// host driver's own speed says nothing about a GPU's.
//
// The model is pessimistic on purpose. SetAccess pays once per mapping it covers, although one call
// may cover a whole range and may be cheaper then: nobody has published that. The other calls pay
// per call, copies per byte as well. What has no published price (Release, Destroy, PinHost,
// UnpinHost, Record, Passed, Wait, GetMemoryInfo) is counted and free. A call that fails is counted
// and pays too.
//
// Thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <set>

#include "absl/base/thread_annotations.h"
#include "allocator/base/mutex.h"
#include "tests/drivers/driver_call.h"
#include "tests/drivers/intercepting_driver.h"

namespace thimble {

// Microseconds. The defaults are the published figures for an A100 80 GB with chunks of 2 MiB, and
// AutoSwap's for PCIe; 1 GB/s is 1000 bytes per microsecond.
struct DriverPrices {
  double reserve_us = 19;
  double release_us = 0;
  double create_us = 193;
  double destroy_us = 0;
  double map_us = 1.5;
  double unmap_us = 26;
  double set_access_us = 36;  // per mapping covered
  double copy_out_us = 47;    // to the host; and per byte:
  double copy_out_bytes_per_us = 13200;
  double copy_in_us = 9.7;
  double copy_in_bytes_per_us = 12200;
};

class CostDriver : public InterceptingDriver {
 public:
  // `base` must outlive this driver.
  explicit CostDriver(Driver& base, const DriverPrices& prices = {})
      : InterceptingDriver(base), prices_(prices) {}

  // Since the driver was made, or since Reset.
  const DriverCallCounts& calls() const { return calls_; }
  std::uint64_t total_calls() const { return calls_.total(); }
  double virtual_us() const;                 // all calls
  double virtual_us(DriverCall call) const;  // of one kind
  void Reset();                              // counts and prices; mappings stay known

 private:
  absl::Status Before(const Call& call) override;
  void After(const Call& call, const absl::Status& status) override;
  double PriceOf(const Call& call) const;
  // At least 1: a call that covers nothing still costs a call.
  std::uint64_t MappingsIn(Address address, Bytes bytes) const;

  const DriverPrices prices_;
  DriverCallCounts calls_;
  mutable Mutex mutex_{LockRank::kDriver};
  std::array<double, kDriverCallCount> spent_us_ ABSL_GUARDED_BY(mutex_) = {};
  std::set<Address> mappings_ ABSL_GUARDED_BY(mutex_);  // where the base has mapped a chunk
};

}  // namespace thimble
