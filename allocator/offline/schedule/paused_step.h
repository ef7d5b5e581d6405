// A step with pauses in it. What an op that waits gives the copy engines is time, so a pause is
// planned like an op that touches nothing, and swapping with a slowdown is swapping without one, in
// a longer step.
#pragma once

#include <vector>

#include "allocator/offline/schedule/problem.h"
#include "allocator/offline/schedule/schedule.h"

namespace thimble::schedule {

// How pauses are spread over a step, before anything is known of what it lacks.
enum class Spread : std::uint8_t { kEverywhere, kBeforePeak, kAfterPeak, kAroundPeak, kAtPeak };
const char* NameOf(Spread spread);

// Nanoseconds before each op, `sum` together, at no more than a few dozen places.
std::vector<Ns> SpreadPauses(const Problem& problem, Spread spread, Ns sum);

struct PausedStep {
  Problem problem;                  // the step with its pauses
  std::vector<std::int32_t> place;  // where each op of the step without them is in it

  // The first op of the step without pauses at or after one of the step with them.
  std::int32_t OpAt(std::int32_t op) const;
};

// `pauses` are nanoseconds before each op; no op where that is 0.
PausedStep AddPauses(const Problem& problem, const std::vector<Ns>& pauses);

// The same schedule for the step without pauses: ops begin later instead.
Schedule RemovePauses(const PausedStep& paused, Schedule schedule);

}  // namespace thimble::schedule
