// A swap plan and what it comes to, for the command and for thimble.h.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "allocator/swap/autoswap.h"
#include "allocator/swap/problem.h"
#include "allocator/swap/schedule.h"
#include "allocator/swap/settings.h"

namespace thimble {

struct SwapSummary {
  swap::Problem problem;  // what the schedule is about: blocks of the trace, or parts of them
  swap::Machine machine;  // and which machine it is for
  swap::Schedule schedule;
  std::int64_t peak_before = 0;
  std::int64_t slowdown = 0;                                  // parts per million
  std::array<std::int64_t, swap::kScores.size()> autoswap{};  // peaks, without slowdown
};

// Every schedule in it has been checked by swap::ValidateSchedule().
absl::StatusOr<SwapSummary> SummarizeSwaps(const swap::Problem& problem,
                                           const swap::Settings& settings);

// The same for a file; writes the schedule to `schedule_path` unless that is empty.
absl::StatusOr<SwapSummary> PlanSwapFile(const std::string& path, const swap::Settings& settings,
                                         const std::string& schedule_path);

}  // namespace thimble
