#include "tests/bench/measure.h"

#include <algorithm>

namespace thimble::bench {
namespace {

bool Fits(const Workload& workload, PolicyKind kind, Bytes capacity) {
  Subject subject(kind, capacity, Sizing::kNatural);
  for (int replay = 0; replay < kFitReplays; ++replay) {
    if (!Replay(workload, &subject.policy())) return false;
  }
  return true;
}

// More than any policy ever took, and still within a machine's address space.
Bytes Unbounded(const Workload& workload) {
  return RoundUp(8 * workload.max_live_bytes + 64 * kGiB, kFitQuantum);
}

}  // namespace

// Starts at the smallest capacity that could suffice, grows in longer and longer strides until one
// does, then bisects. Fit is not quite monotone in capacity, but the returned capacity was tried.
std::optional<Bytes> FindFit(const Workload& workload, PolicyKind kind) {
  constexpr Bytes kFirstStrides = 256;  // the first stride is this part of the smallest capacity
  Bytes too_small = RoundUp(std::max<Bytes>(workload.max_live_bytes, 1), kFitQuantum);
  if (Fits(workload, kind, too_small)) return too_small;
  Bytes stride = std::max(RoundUp(too_small / kFirstStrides, kFitQuantum), kFitQuantum);
  Bytes enough = too_small + stride;
  while (!Fits(workload, kind, enough)) {
    too_small = enough;
    stride *= 2;
    enough += stride;
    if (enough > kLargestCapacity) return std::nullopt;
  }
  while (enough - too_small > kFitQuantum) {
    const Bytes middle = too_small + RoundDown((enough - too_small) / 2, kFitQuantum);
    (Fits(workload, kind, middle) ? enough : too_small) = middle;
  }
  return enough;
}

std::optional<Bytes> MeasurePeakReserved(const Workload& workload, PolicyKind kind,
                                         Bytes fit_bytes) {
  const Bytes capacity = kind == PolicyKind::kBfc ? fit_bytes : Unbounded(workload);
  Subject subject(kind, capacity, Sizing::kGrowth);
  Bytes peak = 0;
  Addresses addresses(workload.ids);
  for (int replay = 0; replay < kFitReplays; ++replay) {
    for (const TraceOp& op : workload.ops) {
      if (!ReplayOp(op, &subject.policy(), &addresses)) return std::nullopt;
      if (op.kind == TraceOpKind::kAllocate) {
        peak = std::max(peak, subject.device().reserved_bytes());
      }
    }
  }
  return peak;
}

std::optional<DriverUse> MeasureDriverUse(const Workload& workload, PolicyKind kind, Bytes capacity,
                                          int replays) {
  Subject subject(kind, capacity, Sizing::kNatural);
  const std::size_t half = workload.ops.size() * static_cast<std::size_t>(replays) / 2;
  std::size_t done = 0;
  std::uint64_t calls_at_half = 0;
  Addresses addresses(workload.ids);
  for (int replay = 0; replay < replays; ++replay) {
    for (const TraceOp& op : workload.ops) {
      if (done++ == half) calls_at_half = subject.device().driver_calls();
      if (!ReplayOp(op, &subject.policy(), &addresses)) return std::nullopt;
    }
  }
  const std::uint64_t calls = subject.device().driver_calls();
  return DriverUse{calls, calls - calls_at_half, subject.device().modelled_us()};
}

}  // namespace thimble::bench
