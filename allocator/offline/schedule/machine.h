// Speed of copies to the host and back. Two copy engines, one for each direction, run concurrently
// with each other and with the ops.
#pragma once

#include "allocator/base/bus.h"
#include "allocator/offline/schedule/problem.h"

namespace thimble::schedule {

struct Machine {
  std::int64_t out_bytes_per_second = kOutBytesPerSecond;
  std::int64_t in_bytes_per_second = kInBytesPerSecond;
  Ns out_latency_ns = 47000;
  Ns in_latency_ns = 9700;
  // How far the host may run ahead of the device. The memory of an evicted block becomes free this
  // much later.
  Ns run_ahead_ns = 0;
};

// How long a copy takes, rounded up to whole nanoseconds.
Ns OutNs(const Machine& machine, std::int64_t bytes);
Ns InNs(const Machine& machine, std::int64_t bytes);

}  // namespace thimble::schedule
