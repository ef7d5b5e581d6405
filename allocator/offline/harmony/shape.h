// The few numbers that define a plan for the search.
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
  // By layer below the fused pack. Only has an effect where the layer's forward runs on the GPU of
  // its backward with the same microbatches. Empty: nothing is kept.
  std::vector<Keep> keep;
  // Backward packs from this layer on are resident if their forward is on their GPU.
  int resident_first = kNoLayer;

  static constexpr int kNoLayer = 1 << 30;
};

// The least bytes to run a task with this pack as one segment.
double TaskBytes(const Costs& costs, Pass pass, int microbatch, Pack pack);

// The most that any layer needs alone with one sample: no plan fits in less.
double LeastBytes(const Costs& costs);
// The most that a GPU could hold at once: weights, gradients and state, and the activations of all
// samples. More memory has no use.
double MostBytes(const Costs& costs, int batch);

// Packs go around the GPUs in the order of the tasks. A kept layer is a segment of its own; the
// layers between are cut into as few segments as fit, with room for the weights of the next pack
// and for what is kept or resident.
Plan PlanOf(const Costs& costs, const Server& server, const Shape& shape, int batch);
// The inverse, for a plan that keeps nothing, with one count for all forward tasks and one for all
// backward tasks.
Shape ShapeOf(const Plan& plan);

// The counts of microbatches worth trying: the smallest count for each size of the largest
// microbatch, up to `largest`.
std::vector<int> Counts(int batch, int largest);

// Seconds that all GPUs compute together. No plan is faster than this divided by their number.
double ComputeSeconds(const Costs& costs, const Shape& shape, int share);

// Cuts layers [0, end) into at most `count` packs, each `growth` times as long as the one below.
std::vector<int> CutTapered(const Costs& costs, Pass pass, int microbatch, int end, int count,
                            double growth);

// The first layer of the largest fused pack that fits; the number of layers if none does.
int LargestFused(const Costs& costs, int microbatch, double memory_bytes);

}  // namespace thimble::harmony
