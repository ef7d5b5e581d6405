#include "allocator/offline/schedule/timeline.h"

#include <algorithm>

namespace thimble::schedule {

Timeline::Timeline(const Problem& problem) {
  for (const Op& op : problem.ops) {
    starts_.push_back(period_);
    period_ += op.ns;
    ends_.push_back(period_);
  }
}

std::int32_t Timeline::FirstFrom(Ns time) const {
  const auto first = std::lower_bound(starts_.begin(), starts_.end(), time % period_);
  return static_cast<std::int32_t>(first - starts_.begin() + time / period_ * ops());
}

std::int32_t Timeline::FirstEndingAfter(Ns time) const {
  const auto first = std::upper_bound(ends_.begin(), ends_.end(), time % period_);
  return static_cast<std::int32_t>(first - ends_.begin() + time / period_ * ops());
}

}  // namespace thimble::schedule
