// Weights move in chunks of whole layers: large enough to be worth a transfer, small enough that
// computing can begin early.
#pragma once

#include <vector>

#include "allocator/offline/harmony/costs.h"

namespace thimble::harmony {

// The first layer of each chunk of `pack`, then one past its last layer.
std::vector<int> ChunkCuts(const Costs& costs, Pack pack);

}  // namespace thimble::harmony
