// Chance for searches that have to be the same every time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "allocator/offline/schedule/schedule.h"
#include "allocator/offline/schedule/target_search.h"
#include "allocator/offline/schedule/windows.h"

namespace thimble::schedule {

class Dice {
 public:
  // From 0 to `sides` - 1.
  std::uint32_t Throw(std::size_t sides);

  // Weights that lead to schedules like `best`: its windows are preferred, but for some, and every
  // window counts a little more than it does. Where several are nearly as good, others are tried.
  TargetSearch::Weights Weigh(const std::vector<Window>& windows, const Schedule& best);

 private:
  std::uint64_t state_ = 1;
};

}  // namespace thimble::schedule
