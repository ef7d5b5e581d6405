// Plans which blocks leave the device and when, so that a step of training needs less memory.
//
//   scores   AutoSwap's four, unchanged (autoswap.h): a plan is never worse than the best of them
//   targets  bisects a limit; for each limit, evicts the blocks that help the ops above it, by
//            different rules (target_search.h). It may use every idle window of every block, and
//            copies of one step may run into the next
//   varied   tries schedules like the best one while there is work left (variation.h)
//   pauses   if a slowdown is allowed, the same in a longer step (paused_step.h)
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
  // The largest peak that is low enough; then the plan has as little slowdown and as few copied
  // bytes as the search finds. 0: the lowest peak within `slowdown`.
  std::int64_t limit = 0;
  std::int64_t slowdown = 0;  // allowed, in parts per million of a step; only without a limit
};

struct PlanOptions {
  // Stops improving the plan after this much work, in units of a few nanoseconds: a few seconds in
  // all. It finishes what it has begun, and keeps a limit that can be kept at any cost.
  std::uint64_t max_work = 2000000000;
};

// `problem` has passed CheckProblem(). kResourceExhausted if none is found within the limit; the
// message has the lowest possible peak.
absl::StatusOr<Schedule> PlanSwaps(const Problem& problem, const Machine& machine, const Goal& goal,
                                   const PlanOptions& options = {});

// How much longer a step takes with swapping, in parts per million.
std::int64_t SlowdownOf(const Problem& problem, const Schedule& schedule);

}  // namespace thimble::schedule
