// Measures the time of another driver, so that it can be subtracted from a policy's own time: mmap
// is not cuMemMap, and the host driver's speed says nothing about a GPU's. The cost driver models
// the cost on a GPU.
//
// Not thread-safe: one thread replays.
#pragma once

#include "tests/bench/clock.h"
#include "tests/drivers/intercepting_driver.h"

namespace thimble::bench {

struct DriverTime {
  double thread_ns = 0;
  std::uint64_t ticks = 0;
};

class TimedDriver : public InterceptingDriver {
 public:
  // `base` must outlive this driver.
  explicit TimedDriver(Driver& base) : InterceptingDriver(base) { Calibrate(); }

  // All calls so far.
  const DriverTime& spent() const { return spent_; }

 private:
  absl::Status Before(const Call& /*call*/) override {
    start_ticks_ = Ticks();
    start_ns_ = ThreadNanoseconds();
    return absl::OkStatus();
  }
  void After(const Call& /*call*/, const absl::Status& /*status*/) override {
    spent_.thread_ns += ThreadNanoseconds() - start_ns_ + own_ns_;
    spent_.ticks += Ticks() - start_ticks_;
  }

  // Reading a thread's clock is a system call, which is not the policy's time either.
  void Calibrate() {
    constexpr int kRounds = 1000;
    const double start = ThreadNanoseconds();
    for (int round = 0; round < kRounds; ++round) {
      Before({}).IgnoreError();
      After({}, absl::OkStatus());
    }
    own_ns_ = (ThreadNanoseconds() - start - spent_.thread_ns) / kRounds;
    spent_ = {};
  }

  std::uint64_t start_ticks_ = 0;  // of the call that is being made
  double start_ns_ = 0;
  double own_ns_ = 0;  // what timing a call costs and does not see
  DriverTime spent_;
};

}  // namespace thimble::bench
