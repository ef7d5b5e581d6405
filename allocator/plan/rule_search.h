// Searches for a good order among those that a Rule can describe: first the portfolio, then random
// rules, more and more of them near the best one so far.
#pragma once

#include <cstdint>
#include <vector>

#include "allocator/plan/orders.h"
#include "allocator/plan/packer.h"

namespace thimble::plan {

class RuleSearch {
 public:
  RuleSearch(Packer& packer, std::uint64_t seed);

  // One pass in the order of one rule. A lower packing becomes `best`.
  void Step(Budget& budget, Packing& best);

  // The order and the fit that gave the lowest packing.
  const std::vector<std::int32_t>& best_order() const { return best_order_; }
  Fit best_fit() const { return best_rule_.fit; }

 private:
  Rule NextRule();

  Packer& packer_;
  Random random_;
  std::vector<std::int32_t> movable_;
  std::size_t steps_ = 0;
  Rule best_rule_;
  std::int64_t best_height_ = kNoHeight;
  std::vector<std::int32_t> best_order_;
  Packing packing_;  // scratch
};

}  // namespace thimble::plan
