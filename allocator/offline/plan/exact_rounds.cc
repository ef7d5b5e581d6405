#include "allocator/offline/plan/exact_rounds.h"

#include <algorithm>

namespace thimble::plan {
namespace {

// MiniMalloc's own three, which suffice for its benchmarks, and others that are sometimes faster by
// orders of magnitude.
constexpr std::size_t kMain = 3;
constexpr Ranking kRankings[] = {
    {Trait::kLoad, Trait::kDuration, Trait::kArea},
    {Trait::kLoad, Trait::kArea, Trait::kDuration},
    {Trait::kDuration, Trait::kArea, Trait::kLoad},
    {Trait::kVolume, Trait::kLength, Trait::kLoad},
    {Trait::kArea, Trait::kDuration, Trait::kLoad},
    {Trait::kNeighbours, Trait::kArea, Trait::kLoad},
    {Trait::kLoad, Trait::kNeighbours, Trait::kArea},
    {Trait::kLength, Trait::kVolume, Trait::kLoad},
    {Trait::kLoad, Trait::kVolume, Trait::kLength},
    {Trait::kLoad, Trait::kLength, Trait::kVolume},
    {Trait::kSize, Trait::kDuration, Trait::kLoad},
};
constexpr std::uint64_t kOthersShare = 4;  // they get a quarter of the nodes
constexpr std::uint64_t kHigherShare = 4;  // so do capacities above the lowest
constexpr std::uint64_t kGrowth = 4;

}  // namespace

ExactRounds::ExactRounds(const Problem& problem, const Sections& sections, std::int64_t unit,
                         std::uint64_t seed)
    : problem_(problem),
      unit_(unit),
      search_(problem, sections),
      random_(seed),
      lowest_(sections.max_load()),
      max_nodes_(4 * problem.buffers.size()) {}

void ExactRounds::Attempt(std::int64_t capacity, std::uint64_t max_nodes, Budget& budget,
                          Packing& best) {
  for (std::size_t k = 0; k < std::size(kRankings); ++k) {
    const std::uint64_t nodes = k < kMain ? max_nodes : max_nodes / kOthersShare;
    const int noise = k < kMain ? 0 : static_cast<int>(rounds_ * random_.Below(15));
    const Outcome outcome = search_.Run(capacity, kRankings[k], nodes, noise, random_, budget);
    if (outcome == Outcome::kImpossible) lowest_ = std::max(lowest_, capacity + unit_);
    if (outcome == Outcome::kFound) {
      best.offsets = search_.offsets();
      best.height = 0;
      for (std::size_t i = 0; i < best.offsets.size(); ++i) {
        best.height = std::max(best.height, best.offsets[i] + problem_.buffers[i].size);
      }
    }
    if (outcome != Outcome::kGaveUp || budget.is_over()) return;
  }
}

void ExactRounds::Round(Budget& budget, Packing& best) {
  for (const std::int64_t share : {0, 4, 2}) {
    if (is_optimal(best) || budget.is_over()) return;
    const std::int64_t steps = (best.height - lowest_) / unit_;
    const std::int64_t capacity = lowest_ + (share == 0 ? 0 : steps / share * unit_);
    if (share != 0 && capacity == lowest_) continue;
    Attempt(capacity, share == 0 ? max_nodes_ : max_nodes_ / kHigherShare, budget, best);
  }
  max_nodes_ *= kGrowth;
  ++rounds_;
}

}  // namespace thimble::plan
