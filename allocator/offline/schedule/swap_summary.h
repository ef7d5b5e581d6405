// A swap plan and its figures.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "allocator/offline/schedule/autoswap.h"
#include "allocator/offline/schedule/problem.h"
#include "allocator/offline/schedule/schedule.h"
#include "allocator/offline/schedule/settings.h"

namespace thimble {

struct SwapSummary {
  schedule::Problem problem;  // blocks of the trace, or parts of them
  schedule::Machine machine;  // the machine that the schedule is for
  schedule::Schedule schedule;
  std::int64_t peak_before = 0;
  std::int64_t slowdown = 0;  // parts per million
};

// The schedule has been checked by schedule::ValidateSchedule().
absl::StatusOr<SwapSummary> SummarizeSwaps(const schedule::Problem& problem,
                                           const schedule::Settings& settings);

// The peak of AutoSwap with one of its scores, without slowdown. Its schedule is checked, too.
absl::StatusOr<std::int64_t> AutoSwapPeak(schedule::Score score, const schedule::Problem& problem,
                                          const schedule::Machine& machine, std::int64_t limit);

}  // namespace thimble
