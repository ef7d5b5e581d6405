#include <algorithm>

#include "allocator/offline/harmony/program_builder.h"

namespace thimble::harmony {

void ProgramBuilder::BuildNeeds(const Lane& lane) {
  const Pack pack = task().pack;
  const int largest = size(0);
  const bool later = task_ > fused_;
  double weights = task().is_backward() ? costs_.WeightBytes(pack) : 0;
  for (const Held& one : weights_) {
    if (out_.tensors[one.tensor].place == place_) weights += out_.tensors[one.tensor].bytes;
  }
  double work = 0;
  for (const Segment& segment : SegmentsDown(task())) {
    const Pack layers = segment.layers;
    // Between segments, the gradient from the segment above is in memory.
    const double inner = layers.last < pack.last ? costs_.InputBytes(largest, layers.last + 1) : 0;
    const double run = segment.keep == Keep::kOnHost ? costs_.KeptBytes(largest, layers)
                       : segment.keep == Keep::kOnGpu
                           ? 0
                           : costs_.WorkBytes(task().pass, largest, layers) +
                                 costs_.InputBytes(largest, layers.first);
    work = std::max(work, run + inner);
  }
  const double below = costs_.InputBytes(largest, pack.first);
  const double above = costs_.InputBytes(largest, pack.last + 1);
  const double gradient = later ? above : 0;
  const double output = task().is_backward() ? (pack.first > 0 ? below : 0) : above;
  double stash = 0;    // includes activations that stay
  double leaving = 0;  // activations on their way to the host, one at a time
  for (const Later& one : later_) {
    const Pack layers = one.segment.layers;
    if (task().is_backward() || !Overlap(layers, pack)) continue;
    switch (one.segment.keep) {
      case Keep::kNothing:
        if (layers.first > pack.first) stash += costs_.InputBytes(largest, layers.first);
        break;
      case Keep::kOnGpu:
        stash += costs_.KeptBytes(largest, layers);
        break;
      case Keep::kOnHost:
        leaving = std::max(leaving, costs_.KeptBytes(largest, layers));
        break;
    }
  }
  double need = weights + work + gradient + output + stash + leaving;
  if (next_is_here_) need += (count() - 1) * output;
  if (!lane.outputs.empty() && lane.outputs_gpu == gpu_ && !lane.outputs_on_host) {
    need += (count() - 1) * (later ? gradient : below);
  }
  out_.need[gpu_].push_back(need);
  out_.preferred[gpu_].push_back(need + below + gradient + output);
}

}  // namespace thimble::harmony
