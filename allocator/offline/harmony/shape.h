// The plans that the search looks at, in the few numbers that make one.
#pragma once

#include <vector>

#include "allocator/offline/harmony/costs.h"
#include "allocator/offline/harmony/plan.h"
#include "allocator/offline/harmony/server.h"

namespace thimble::harmony {

struct Shape {
  Mode mode = Mode::kPipeline;
  std::vector<int> forward;   // the first layer of every forward pack, ascending
  std::vector<int> backward;  // and of every backward pack but the fused one
  int fused_first = 0;
  int forward_count = 1;  // of microbatches
  int backward_count = 1;
  int fused_count = 1;
  bool boundaries_on_host = false;
  // By layer below the fused pack, where its forward runs where its backward does, with the same
  // microbatches; empty: nothing is kept.
  std::vector<Keep> keep;
  // Backward packs from this layer on are resident, where their forward is on their GPU.
  int resident_first = kNoLayer;

  static constexpr int kNoLayer = 1 << 30;
};

// What a task with this pack needs at least to run, as one segment.
double TaskBytes(const Costs& costs, Pass pass, int microbatch, Pack pack);

// The most that any layer needs by itself, one sample at a time: no plan fits in less.
double LeastBytes(const Costs& costs);
// All that a GPU could hold at once: weights, gradients and state, and the activations of all
// samples. More memory is of no use.
double MostBytes(const Costs& costs, int batch);

// Packs go around the GPUs, in the order of the tasks. A layer that is kept is a segment of its
// own; what lies between is cut into as few segments as fit, with room for the weights of the next
// pack and for what is kept or resident.
Plan PlanOf(const Costs& costs, const Server& server, const Shape& shape, int batch);
// The inverse, for a plan with one count for all forward tasks and one for all backward ones that
// keeps nothing.
Shape ShapeOf(const Plan& plan);

// The counts of microbatches that are worth a look: the least of those with the same largest one,
// which is at most `largest`.
std::vector<int> Counts(int batch, int largest);

// What all GPUs compute together. Nothing can be faster than that divided by their number.
double ComputeSeconds(const Costs& costs, const Shape& shape, int share);

// Cuts layers [0, end) into at most `count` packs, each `growth` times as long as the one below it.
std::vector<int> CutTapered(const Costs& costs, Pass pass, int microbatch, int end, int count,
                            double growth);

// The first layer of the largest fused pack that fits; the number of layers if none does.
int LargestFused(const Costs& costs, int microbatch, double memory_bytes);

}  // namespace thimble::harmony
