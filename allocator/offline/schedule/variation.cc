#include "allocator/offline/schedule/variation.h"

#include <set>
#include <utility>

namespace thimble::schedule {

std::uint32_t Variation::Index(std::size_t count) {
  state_ = state_ * 6364136223846793005 + 1442695040888963407;  // Knuth's MMIX
  return static_cast<std::uint32_t>((state_ >> 33) % count);
}

TargetSearch::Weights Variation::WeightsLike(const std::vector<Window>& windows,
                                             const Schedule& best) {
  constexpr std::uint32_t kPreference = 4;
  constexpr std::size_t kEighths = 8;
  const std::uint32_t kept = Index(kEighths);
  std::set<std::pair<std::int32_t, std::int32_t>> preferred;  // block and op after which it leaves
  for (const Swap& swap : best.swaps) {
    if (Index(kEighths) < kept) preferred.emplace(swap.block, swap.after);
  }
  const std::uint32_t most = TargetSearch::kPlain >> (2 + Index(4));
  TargetSearch::Weights weights;
  for (const Window& window : windows) {
    const bool is_preferred = preferred.count({window.block, window.after}) > 0;
    weights.push_back((TargetSearch::kPlain + Index(most)) * (is_preferred ? kPreference : 1));
  }
  return weights;
}

}  // namespace thimble::schedule
