// Exact searches in rounds: several capacities, several rankings, and twice the nodes each round.
// No ranking is best for every problem. A ranking that finds a packing often finds it early.
#pragma once

#include <cstdint>

#include "allocator/offline/plan/exact_search.h"
#include "allocator/plan/budget.h"
#include "allocator/plan/packer.h"
#include "allocator/plan/problem.h"

namespace thimble::plan {

class ExactRounds {
 public:
  // `unit`: of all sizes. `problem` and `sections` must outlive this.
  ExactRounds(const Problem& problem, const Sections& sections, std::int64_t unit,
              std::uint64_t seed);

  // One round. A lower packing becomes `best`.
  void Round(Budget& budget, Packing& best);

  bool is_optimal(const Packing& best) const { return best.height <= lowest_; }

 private:
  // All rankings at one capacity.
  void Attempt(std::int64_t capacity, std::uint64_t max_nodes, Budget& budget, Packing& best);

  const Problem& problem_;
  const std::int64_t unit_;
  ExactSearch search_;
  Random random_;
  std::int64_t lowest_;  // height that is not proven impossible
  std::uint64_t max_nodes_;
  std::uint64_t rounds_ = 0;
};

}  // namespace thimble::plan
