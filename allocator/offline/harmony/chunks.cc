#include "allocator/offline/harmony/chunks.h"

#include <algorithm>

#include "allocator/base/bytes.h"

namespace thimble::harmony {
namespace {

constexpr double kLeastBytes = static_cast<double>(64 * kMiB);
constexpr double kMostChunks = 8;

}  // namespace

std::vector<int> ChunkCuts(const Costs& costs, Pack pack) {
  const double part = std::max(kLeastBytes, costs.WeightBytes(pack) / kMostChunks);
  std::vector<int> cuts(1, pack.first);
  for (int layer = pack.first; layer < pack.last; ++layer) {
    if (costs.WeightBytes({cuts.back(), layer}) >= part) cuts.push_back(layer + 1);
  }
  cuts.push_back(pack.last + 1);
  return cuts;
}

}  // namespace thimble::harmony
