// How the published system cuts a model into packs, with its names and its rules to the letter.
//
// A layer counts with its peak without its input. Greedy packers fill one pack after the other;
// balanced ones take the smallest number of packs that fit, all of about the same sum. What ends in
// `addx` counts the input of a pack's first layer; what does not can overrun the memory by that.
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

// Layers [0, layers) for microbatches of `size`, each pack within `memory_bytes`. Empty if there is
// no such cut. Not for kReuse.
std::vector<Pack> CutIntoPacks(const Costs& costs, Packer packer, Pass pass, int size, int layers,
                               double memory_bytes);

// kReuse: may these packs run forward with microbatches of `size`?
bool MayReuse(const Costs& costs, const std::vector<Pack>& packs, int size, double memory_bytes);

}  // namespace thimble::harmony
