// Random choices that are the same in every run, for searches near a good schedule.
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
  // A number below `count`.
  std::uint32_t Index(std::size_t count);

  // Weights that lead to schedules like `best`: its windows are preferred, but for some, and every
  // window counts a little more than it does. Where several are nearly as good, others are tried.
  TargetSearch::Weights WeightsLike(const std::vector<Window>& windows, const Schedule& best);

 private:
  std::uint64_t state_ = 1;
};

}  // namespace thimble::schedule
