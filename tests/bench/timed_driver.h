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
  explicit TimedDriver(Driver& base) : ForwardingDriver(base) {}

  // All calls so far.
  const DriverTime& spent() const { return spent_; }

  absl::StatusOr<Address> Reserve(Bytes bytes, Bytes alignment) override {
    const Stopwatch stopwatch(&spent_);
    return base().Reserve(bytes, alignment);
  }
  absl::Status Release(Address address, Bytes bytes) override {
    const Stopwatch stopwatch(&spent_);
    return base().Release(address, bytes);
  }
  absl::StatusOr<ChunkHandle> Create(Bytes bytes) override {
    const Stopwatch stopwatch(&spent_);
    return base().Create(bytes);
  }
  absl::Status Destroy(ChunkHandle chunk) override {
    const Stopwatch stopwatch(&spent_);
    return base().Destroy(chunk);
  }
  absl::Status Map(Address address, Bytes bytes, ChunkHandle chunk) override {
    const Stopwatch stopwatch(&spent_);
    return base().Map(address, bytes, chunk);
  }
  absl::Status Unmap(Address address, Bytes bytes) override {
    const Stopwatch stopwatch(&spent_);
    return base().Unmap(address, bytes);
  }
  absl::Status SetAccess(Address address, Bytes bytes) override {
    const Stopwatch stopwatch(&spent_);
    return base().SetAccess(address, bytes);
  }
  absl::StatusOr<StreamSeq> Record(StreamId stream) override {
    const Stopwatch stopwatch(&spent_);
    return base().Record(stream);
  }
  absl::StatusOr<bool> Passed(StreamId stream, StreamSeq point) override {
    const Stopwatch stopwatch(&spent_);
    return base().Passed(stream, point);
  }

 private:
  class Stopwatch {
   public:
    explicit Stopwatch(DriverTime* spent)
        : spent_(spent), start_ticks_(Ticks()), start_ns_(ThreadNanoseconds()) {}
    ~Stopwatch() {
      spent_->thread_ns += ThreadNanoseconds() - start_ns_;
      spent_->ticks += Ticks() - start_ticks_;
    }
    Stopwatch(const Stopwatch&) = delete;
    Stopwatch& operator=(const Stopwatch&) = delete;

   private:
    DriverTime* const spent_;
    const std::uint64_t start_ticks_;
    const double start_ns_;
  };

  DriverTime spent_;
};

}  // namespace thimble::bench
