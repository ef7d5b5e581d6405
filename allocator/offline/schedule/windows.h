// Finds all windows in which blocks are idle and could be on the host.
#pragma once

#include <vector>

#include "allocator/offline/schedule/problem.h"

namespace thimble::schedule {

// The time between two ops of Problem, both excluded. A block leaves once per window and step.
struct Window {
  std::int32_t block = 0;
  std::int32_t after = 0;   // below n
  std::int32_t before = 0;  // the op that touches it next, or before which it is freed
  bool returns = true;      // false: no op touches it again

  bool Spans(std::int32_t op, std::int32_t ops) const {
    return (after < op && op < before) || (after < op + ops && op + ops < before);
  }
};

std::vector<Window> FindWindows(const Problem& problem);

// The peak if every block is gone in all of its windows: no schedule has a lower one.
std::int64_t LowestPeak(const Problem& problem, const std::vector<Window>& windows);

}  // namespace thimble::schedule
