// Makes chosen calls of another driver fail, so that tests can walk through every way an operation
// can go wrong. A call that is made to fail never reaches the base driver: it changed nothing.
//
//   FaultDriver faults(host);
//   for (std::uint64_t k = 0;; ++k) {       // each driver call of Operation() fails once
//     faults.FailCall(k);
//     if (Operation().ok()) break;          // it makes fewer than k + 1 calls
//     ...
//   }
//
// Disarmed when made. Thread-safe; with several threads, which of them meets the fault depends on
// the schedule.
#pragma once

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "allocator/base/mutex.h"
#include "tests/drivers/driver_call.h"
#include "tests/drivers/intercepting_driver.h"

namespace thimble {

// Which calls fail. Only calls in `among` are looked at, counted from 0 when the plan is armed.
struct FaultPlan {
  std::uint64_t first = 0;  // the first that fails
  std::uint64_t every = 0;  // then every how many again: 0 never, 1 all that follow (sticky)
  DriverCallSet among = DriverCallSet::All();
  absl::StatusCode code = absl::StatusCode::kResourceExhausted;
};

class FaultDriver : public InterceptingDriver {
 public:
  // `base` must outlive this driver.
  explicit FaultDriver(Driver& base) : InterceptingDriver(base) {}

  // Replaces the plan; counting for it starts now.
  void Arm(const FaultPlan& plan);
  void Disarm();

  // The plans tests use most: the k-th call from now (0 is the next one), every n-th, and all calls
  // of one kind until disarmed.
  void FailCall(std::uint64_t k) { Arm({/*first=*/k}); }
  void FailEvery(std::uint64_t n) { Arm({/*first=*/n - 1, /*every=*/n}); }
  void FailAll(DriverCall call) { Arm({/*first=*/0, /*every=*/1, {call}}); }

  // Since the driver was made, failed ones included.
  const DriverCallCounts& calls() const { return calls_; }
  std::uint64_t failures() const;

 private:
  // Counts the call; not OK if the plan makes it fail.
  absl::Status Before(const Call& call) override;

  DriverCallCounts calls_;
  mutable Mutex mutex_{LockRank::kDriver};
  bool armed_ ABSL_GUARDED_BY(mutex_) = false;
  FaultPlan plan_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t met_ ABSL_GUARDED_BY(mutex_) = 0;  // calls in plan_.among since armed
  std::uint64_t failures_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace thimble
