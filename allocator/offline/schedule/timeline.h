// When the ops of a step run if none waits: back to back, step after step.
#pragma once

#include <vector>

#include "allocator/offline/schedule/problem.h"

namespace thimble::schedule {

class Timeline {
 public:
  explicit Timeline(const Problem& problem);

  std::int32_t ops() const { return static_cast<std::int32_t>(starts_.size()); }
  Ns period() const { return period_; }

  // For ops of any step: op n + k runs one period after op k.
  Ns Start(std::int32_t op) const { return starts_[op % ops()] + op / ops() * period_; }
  Ns End(std::int32_t op) const { return ends_[op % ops()] + op / ops() * period_; }

  // The first op that begins at `time` or later, and the first that ends after it. `time` >= 0.
  std::int32_t FirstFrom(Ns time) const;
  std::int32_t FirstEndingAfter(Ns time) const;

 private:
  std::vector<Ns> starts_;
  std::vector<Ns> ends_;
  Ns period_ = 0;
};

}  // namespace thimble::schedule
