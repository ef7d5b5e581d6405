// The figures of one trace. README.md explains each and why it is measured this way.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "allocator/base/bytes.h"
#include "tests/bench/subject.h"
#include "tests/bench/workload.h"

namespace thimble::bench {

inline constexpr Bytes kFitQuantum = 2 * kMiB;
inline constexpr int kFitReplays = 3;

// No device is larger, so no device recorded a trace that needs more.
inline constexpr Bytes kLargestCapacity = 8 * kTiB;

// The smallest capacity at which kFitReplays replays in a row succeed on one instance; nothing if
// even kLargestCapacity does not suffice.
std::optional<Bytes> FindFit(const Workload& workload, PolicyKind kind);

// The most that a policy reserves when it may grow without bound; nothing if a replay fails. A
// policy that cannot grow gets `fit_bytes`.
std::optional<Bytes> MeasurePeakReserved(const Workload& workload, PolicyKind kind,
                                         Bytes fit_bytes);

struct DriverUse {
  std::uint64_t calls = 0;
  std::uint64_t calls_last_half = 0;  // in the second half of the operations of all replays
  double modelled_us = 0;
};

// `replays` in a row from an empty instance; nothing if one fails.
std::optional<DriverUse> MeasureDriverUse(const Workload& workload, PolicyKind kind, Bytes capacity,
                                          int replays);

// Time in the policy's own code; the driver's is left out (timed_driver.h).
struct Speed {
  double ns_per_op = 0;  // of the best round
  double p999_ns = 0;    // of the best round; two readings of the clock are part of it
};

struct SpeedSubject {
  PolicyKind kind;
  Bytes capacity;
};

// Measures the steady state. The policies take turns, round by round, so that other load on the
// machine affects all of them. Nothing for a policy that runs out of memory.
std::vector<std::optional<Speed>> MeasureSpeed(const Workload& workload,
                                               const std::vector<SpeedSubject>& subjects);

}  // namespace thimble::bench
