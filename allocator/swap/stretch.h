// A step with pauses in it. What an op that waits gives the copy engines is time, so a pause is
// planned like an op that touches nothing, and swapping with a slowdown is swapping without one, in
// a longer step.
#pragma once

#include <vector>

#include "allocator/swap/problem.h"
#include "allocator/swap/schedule.h"

namespace thimble::swap {

// Where the pauses of a step are.
enum class Pauses : std::uint8_t { kEverywhere, kBeforePeak, kAfterPeak, kAroundPeak, kAtPeak };
const char* NameOf(Pauses pauses);

struct Stretched {
  Problem problem;                  // the step with its pauses
  std::vector<std::int32_t> place;  // where each op of the step without them is in it
};

// Adds pauses of `sum` nanoseconds together, at no more than a few dozen places.
Stretched Stretch(const Problem& problem, Pauses pauses, Ns sum);

// The same schedule for the step without pauses: ops begin later instead.
Schedule Unstretch(const Stretched& stretched, Schedule schedule);

}  // namespace thimble::swap
