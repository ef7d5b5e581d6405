// How the published system cuts a model into packs: its names and its exact rules.
//
// A layer counts with its peak minus its input. Greedy packers fill one pack after the other;
// balanced packers use the smallest number of packs that fit, all with about the same sum. Packers
// whose names end in `addx` count the input of a pack's first layer; the others can exceed the
// memory by it.
#pragma once

#include <vector>

#include "absl/strings/string_view.h"
#include "allocator/offline/harmony/costs.h"

namespace thimble::harmony {

enum class Packer {
  kGreedy,  // from the first layer on
  kGreedyAddx,
  kGreedyReverse,  // from the last layer on
  kGreedyReverseAddx,
  kBalanced,  // by memory
  kBalancedAddx,
  kBalancedTime,  // by time; counts the input
  kReuse          // forward packs are the backward ones without the fused one
};
inline constexpr int kPackers = 8;
absl::string_view NameOf(Packer packer);

// Cuts layers [0, layers) for microbatches of `size`, each pack within `memory_bytes`. Empty if no
// cut fits. Not for kReuse.
std::vector<Pack> CutIntoPacks(const Costs& costs, Packer packer, Pass pass, int size, int layers,
                               double memory_bytes);

// kReuse: whether these packs can run forward with microbatches of `size`.
bool MayReuse(const Costs& costs, const std::vector<Pack>& packs, int size, double memory_bytes);

}  // namespace thimble::harmony
