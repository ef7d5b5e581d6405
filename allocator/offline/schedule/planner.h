// Plans what leaves the device and when, so that a step of training needs less memory.
//
//   scores   AutoSwap's four, as they are (autoswap.h): a plan is never worse than the best of them
//   targets  a limit is bisected; for each one, whatever helps the op that is over it leaves, by
//            different rules (target_search.h): every idle window of every block counts, and
//            copies of one step may run into the next
//   varied   as long as there is work left, schedules like the best one (variation.h)
//   pauses   where a slowdown is allowed, the same in a longer step (paused_step.h)
//
// A pure function: no clock, and random choices that are the same in every run. The same input
// gives the same schedule.
#pragma once

#include <array>
#include <cstdint>

#include "absl/status/statusor.h"
#include "allocator/offline/schedule/machine.h"
#include "allocator/offline/schedule/problem.h"
#include "allocator/offline/schedule/schedule.h"

namespace thimble::schedule {

inline constexpr std::int64_t kMillion = 1000000;
inline constexpr std::int64_t kMostSlowdown = 10 * kMillion;  // in parts per million of a step

struct Goal {
  // The largest peak that is low enough, with as little slowdown and as few bytes copied as can be
  // found. 0: as low as can be with `slowdown`.
  std::int64_t limit = 0;
  std::int64_t slowdown = 0;  // parts per million of a step that may be lost; only without a limit
};

struct PlanOptions {
  // Looks for something better up to here, in units of some nanoseconds: a few seconds together.
  // What is begun is finished, and a limit that can be kept is kept whatever that takes.
  std::uint64_t max_work = 2000000000;
};

// `problem` has passed CheckProblem(). If no schedule within the limit is found, that is
// kResourceExhausted, with the peak that no schedule can go below.
absl::StatusOr<Schedule> PlanSwaps(const Problem& problem, const Machine& machine, const Goal& goal,
                                   const PlanOptions& options = {});

// How much longer a step takes, in parts per million.
std::int64_t SlowdownOf(const Problem& problem, const Schedule& schedule);

}  // namespace thimble::schedule
