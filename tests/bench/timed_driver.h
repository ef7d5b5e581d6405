// Measures how long another driver takes, so that it can be left out of a policy's own time: mmap
// is not cuMemMap, and the host driver's speed says nothing about a GPU's. What the calls would
// cost there is the cost driver's business.
//
// Not thread-safe: one thread replays.
#pragma once

#include "allocator/driver/forwarding_driver.h"
#include "tests/bench/clock.h"

namespace thimble::bench {

struct DriverTime {
  double thread_ns = 0;
  std::uint64_t ticks = 0;
};

class TimedDriver : public ForwardingDriver {
 public:
  // `base` must outlive this driver.
  explicit TimedDriver(Driver& base) : ForwardingDriver(base) { Calibrate(); }

  // All calls so far.
  const DriverTime& spent() const { return spent_; }

  absl::StatusOr<Address> Reserve(Bytes bytes, Bytes alignment) override {
    const Stopwatch stopwatch(this);
    return base().Reserve(bytes, alignment);
  }
  absl::Status Release(Address address, Bytes bytes) override {
    const Stopwatch stopwatch(this);
    return base().Release(address, bytes);
  }
  absl::StatusOr<ChunkHandle> Create(Bytes bytes) override {
    const Stopwatch stopwatch(this);
    return base().Create(bytes);
  }
  absl::Status Destroy(ChunkHandle chunk) override {
    const Stopwatch stopwatch(this);
    return base().Destroy(chunk);
  }
  absl::Status Map(Address address, Bytes bytes, ChunkHandle chunk) override {
    const Stopwatch stopwatch(this);
    return base().Map(address, bytes, chunk);
  }
  absl::Status Unmap(Address address, Bytes bytes) override {
    const Stopwatch stopwatch(this);
    return base().Unmap(address, bytes);
  }
  absl::Status SetAccess(Address address, Bytes bytes) override {
    const Stopwatch stopwatch(this);
    return base().SetAccess(address, bytes);
  }
  absl::StatusOr<StreamSeq> Record(StreamId stream) override {
    const Stopwatch stopwatch(this);
    return base().Record(stream);
  }
  absl::StatusOr<bool> Passed(StreamId stream, StreamSeq point) override {
    const Stopwatch stopwatch(this);
    return base().Passed(stream, point);
  }

 private:
  class Stopwatch {
   public:
    explicit Stopwatch(TimedDriver* driver)
        : driver_(driver), start_ticks_(Ticks()), start_ns_(ThreadNanoseconds()) {}
    ~Stopwatch() {
      driver_->spent_.thread_ns += ThreadNanoseconds() - start_ns_ + driver_->own_ns_;
      driver_->spent_.ticks += Ticks() - start_ticks_;
    }
    Stopwatch(const Stopwatch&) = delete;
    Stopwatch& operator=(const Stopwatch&) = delete;

   private:
    TimedDriver* const driver_;
    const std::uint64_t start_ticks_;
    const double start_ns_;
  };

  // Reading the clock of a thread is a system call, and not the policy's time either.
  void Calibrate() {
    constexpr int kRounds = 1000;
    const double start = ThreadNanoseconds();
    for (int round = 0; round < kRounds; ++round) const Stopwatch stopwatch(this);
    own_ns_ = (ThreadNanoseconds() - start - spent_.thread_ns) / kRounds;
    spent_ = {};
  }

  double own_ns_ = 0;  // what a stopwatch costs and does not see
  DriverTime spent_;
};

}  // namespace thimble::bench
