// Weights travel in chunks of whole layers: large enough to be worth a transfer, small enough that
// computing can begin with the first one.
#pragma once

#include <vector>

#include "allocator/offline/harmony/costs.h"

namespace thimble::harmony {

// The first layer of every chunk of `pack`, and one past its last layer.
std::vector<int> ChunkCuts(const Costs& costs, Pack pack);

}  // namespace thimble::harmony
