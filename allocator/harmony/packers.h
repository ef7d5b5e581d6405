// How the published system cuts a model into packs: the smallest number of packs that fit.
#pragma once

#include <vector>

#include "allocator/harmony/costs.h"

namespace thimble::harmony {

enum class Packer {
  kBalancedTime,    // packs of about the same time
  kBalancedMemory,  // of about the same memory
  kGreedyMemory     // from the last layer on, as much as fits
};

// Layers [0, layers) for microbatches of `size`, each pack within `memory_bytes` by the published
// rule. Empty if there is no such cut.
std::vector<Pack> CutIntoPacks(const Costs& costs, Packer packer, Pass pass, int size, int layers,
                               double memory_bytes);

}  // namespace thimble::harmony
