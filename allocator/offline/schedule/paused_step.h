// A step with pauses in it. An op that waits gives time to the copy engines. So a pause is planned
// like an op that touches nothing, and swapping with a slowdown is swapping without one in a longer
// step.
#pragma once

#include <vector>

#include "allocator/offline/schedule/problem.h"
#include "allocator/offline/schedule/schedule.h"

namespace thimble::schedule {

// How to spread pauses over a step before the search knows where they are needed.
enum class Spread : std::uint8_t { kEverywhere, kBeforePeak, kAfterPeak, kAroundPeak, kAtPeak };
const char* NameOf(Spread spread);

// Nanoseconds before each op. They sum to `sum`, at a few dozen places at most.
std::vector<Ns> SpreadPauses(const Problem& problem, Spread spread, Ns sum);

struct PausedStep {
  Problem problem;                  // the step with its pauses
  std::vector<std::int32_t> place;  // index in `problem` of each op of the original step

  // The first op of the original step at or after op `op` of `problem`.
  std::int32_t OpAt(std::int32_t op) const;
};

// `pauses` are nanoseconds before each op; 0 adds no pause.
PausedStep AddPauses(const Problem& problem, const std::vector<Ns>& pauses);

// The same schedule for the original step, whose ops begin later instead.
Schedule RemovePauses(const PausedStep& paused, Schedule schedule);

}  // namespace thimble::schedule
