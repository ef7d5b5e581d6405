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
#include "allocator/driver/driver_call.h"
#include "allocator/driver/forwarding_driver.h"

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

class CostDriver : public ForwardingDriver {
 public:
  // `base` must outlive this driver.
  explicit CostDriver(Driver& base, const DriverPrices& prices = {})
      : ForwardingDriver(base), prices_(prices) {}

  // Since the driver was made, or since Reset.
  const DriverCallCounts& calls() const { return calls_; }
  std::uint64_t total_calls() const { return calls_.total(); }
  double virtual_us() const;                 // all calls
  double virtual_us(DriverCall call) const;  // of one kind
  void Reset();                              // counts and prices; mappings stay known

  absl::StatusOr<Address> Reserve(Bytes bytes, Bytes alignment) override;
  absl::Status Release(Address address, Bytes bytes) override;
  absl::StatusOr<ChunkHandle> Create(Bytes bytes) override;
  absl::Status Destroy(ChunkHandle chunk) override;
  absl::Status Map(Address address, Bytes bytes, ChunkHandle chunk) override;
  absl::Status Unmap(Address address, Bytes bytes) override;
  absl::Status SetAccess(Address address, Bytes bytes) override;
  absl::Status Copy(Address device, void* host, Bytes bytes, CopyDirection direction) override;
  absl::Status PinHost(void* host, Bytes bytes) override;
  absl::Status UnpinHost(void* host) override;
  absl::StatusOr<StreamSeq> Record(StreamId stream) override;
  absl::StatusOr<bool> Passed(StreamId stream, StreamSeq point) override;
  absl::Status Wait(StreamId stream, StreamSeq point) override;
  absl::StatusOr<MemoryInfo> GetMemoryInfo() override;

 private:
  void Pay(DriverCall call, double us);
  // At least 1: a call that covers nothing still costs a call.
  std::uint64_t MappingsIn(Address address, Bytes bytes) const;

  const DriverPrices prices_;
  DriverCallCounts calls_;
  mutable Mutex mutex_{LockRank::kDriver};
  std::array<double, kDriverCallCount> spent_us_ ABSL_GUARDED_BY(mutex_) = {};
  std::set<Address> mappings_ ABSL_GUARDED_BY(mutex_);  // where the base has mapped a chunk
};

}  // namespace thimble
