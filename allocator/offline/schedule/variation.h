// Random choices for searches near a good schedule, the same in every run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "allocator/offline/schedule/schedule.h"
#include "allocator/offline/schedule/target_search.h"
#include "allocator/offline/schedule/windows.h"

namespace thimble::schedule {

class Variation {
 public:
  // A random number below `count`.
  std::uint32_t Index(std::size_t count);

  // Weights that lead to schedules like `best`: they prefer a random part of its windows, and raise
  // every window by a small random amount. So the search tries others where several are nearly as
  // good.
  TargetSearch::Weights WeightsLike(const std::vector<Window>& windows, const Schedule& best);

 private:
  std::uint64_t state_ = 1;
};

}  // namespace thimble::schedule
