// The searches that need only a Packer. They take turns and share one best packing.
#pragma once

#include <cstdint>
#include <utility>

#include "allocator/plan/budget.h"
#include "allocator/plan/ejection.h"
#include "allocator/plan/packer.h"
#include "allocator/plan/problem.h"
#include "allocator/plan/rule_search.h"
#include "allocator/plan/squeaky_wheel.h"

namespace thimble::plan {

class Improvement {
 public:
  static constexpr std::uint64_t kEjectionWork = 20'000'000;  // some tenths of a second

  // Makes the first packing: cancelling stops that, the deadline does not.
  Improvement(Packer& packer, const SolveOptions& options);

  // Gives every search one turn; ejection takes about `ejection_work`. False when another turn is
  // useless or the budget is spent.
  bool Step(std::uint64_t ejection_work, Budget& budget);

  Packing& best() { return best_; }
  // Moves the best packing into a plan.
  Plan TakeBest() { return {std::move(best_.offsets), best_.height, packer_.lower_bound()}; }

 private:
  bool IsGoodEnough() const;

  Packer& packer_;
  const std::int64_t target_;
  RuleSearch rules_;
  SqueakyWheel squeaky_;
  Ejection ejection_;
  std::uint64_t turns_ = 0;
  Packing best_;
};

}  // namespace thimble::plan
