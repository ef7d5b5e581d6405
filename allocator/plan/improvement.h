// The searches that need only a Packer, taking turns on one best packing.
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

  // Makes the first packing; its deadline does not count for that, but to be cancelled does.
  Improvement(Packer& packer, const SolveOptions& options);

  // A turn of every search; that of ejection takes about `ejection_work`. False when there is no
  // use or no budget for another.
  bool Step(std::uint64_t ejection_work, Budget& budget);

  Packing& best() { return best_; }
  // As a plan; nothing is left here.
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
