#include "allocator/plan/rule_search.h"

#include <algorithm>

namespace thimble::plan {

RuleSearch::RuleSearch(Packer& packer, std::uint64_t seed) : packer_(packer), random_(seed) {
  for (std::int32_t i = 0; i < packer.count(); ++i) {
    if (packer.fixed()[i] == kNowhere) movable_.push_back(i);
  }
}

Rule RuleSearch::NextRule() {
  constexpr std::size_t kAnywhere = 12;  // random rules before the first one near the best
  const std::vector<Rule>& portfolio = Portfolio();
  const std::size_t step = steps_++;
  if (step < portfolio.size()) return portfolio[step];
  if (step < portfolio.size() + kAnywhere || random_.OneIn(3)) return AnyRule(random_);
  return NearbyRule(best_rule_, random_);
}

void RuleSearch::Step(Budget& budget, Packing& best) {
  const Rule rule = NextRule();
  std::vector<std::int32_t> order = MakeOrder(movable_, packer_.traits(), rule, random_);
  // Compares with the best packing of rules, not with `best`: another search may have found a lower
  // one, but rules may still improve.
  if (!packer_.Pack(order, rule.fit, best_height_, budget, packing_)) return;
  best_height_ = packing_.height;
  best_rule_ = rule;
  best_order_ = std::move(order);
  if (packing_.height < best.height) std::swap(best, packing_);
}

}  // namespace thimble::plan
