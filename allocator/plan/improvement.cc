#include "allocator/plan/improvement.h"

#include <algorithm>
#include <limits>

namespace thimble::plan {
namespace {

// Lays all buffers end to end: the answer when there was no time for a search.
void Stack(const Packer& packer, Packing& packing) {
  packing.offsets = packer.fixed();
  packing.height = 0;
  for (std::int32_t i = 0; i < packer.count(); ++i) {
    if (packing.offsets[i] == kNowhere) continue;
    packing.height = std::max(packing.height, packing.offsets[i] + packer.sizes()[i]);
  }
  for (std::int32_t i = 0; i < packer.count(); ++i) {
    if (packing.offsets[i] != kNowhere) continue;
    packing.offsets[i] = packing.height;
    packing.height += packer.sizes()[i];
  }
}

}  // namespace

Improvement::Improvement(Packer& packer, const SolveOptions& options)
    : packer_(packer),
      target_(std::max(options.target, packer.lower_bound())),
      rules_(packer, options.seed),
      squeaky_(packer, options.seed),
      ejection_(packer, options.seed) {
  SolveOptions first;
  first.seconds = std::numeric_limits<double>::max();
  first.cancel = options.cancel;
  Budget budget(first);
  rules_.Step(budget, best_);
  if (best_.height == kNoHeight) Stack(packer, best_);
}

bool Improvement::IsGoodEnough() const { return best_.height <= target_; }

bool Improvement::Step(std::uint64_t ejection_work, Budget& budget) {
  constexpr int kPasses = 24;
  const auto is_done = [&] { return IsGoodEnough() || budget.is_over(); };
  for (int k = 0; k < kPasses; ++k) {
    if (is_done()) return false;
    rules_.Step(budget, best_);
  }
  // Among thousands of buffers, one place forward or back changes little.
  constexpr std::int32_t kMostSqueaky = 4000;
  if (packer_.count() <= kMostSqueaky) {
    if (turns_++ % 2 == 0) squeaky_.Start(rules_.best_order(), rules_.best_fit(), best_);
    for (int k = 0; k < kPasses; ++k) {
      if (is_done()) return false;
      squeaky_.Step(budget, best_);
    }
  }
  ejection_.Run(ejection_work, budget, best_);
  return !is_done();
}

}  // namespace thimble::plan
