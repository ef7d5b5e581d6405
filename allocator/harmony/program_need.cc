#include <algorithm>

#include "allocator/harmony/program_builder.h"

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
  int kept = later ? task().kept_layers : 0;
  for (const Pack& segment : SegmentsDown(task())) {
    const int here = std::min(kept, segment.last - segment.first + 1);
    const Pack again = {segment.first, segment.last - here};
    const Pack rest = {again.last + 1, segment.last};
    kept -= here;
    const double fetched = here > 0 && task().kept_on_host
                               ? costs_.WorkBytes(Pass::kBackward, largest, rest) +
                                     costs_.InputBytes(largest, rest.first)
                               : 0;
    // Between segments there is the gradient from the one above.
    const double inner =
        segment.last < pack.last ? costs_.InputBytes(largest, segment.last + 1) : 0;
    const double run = again.first > again.last ? 0
                                                : costs_.WorkBytes(task().pass, largest, again) +
                                                      costs_.InputBytes(largest, segment.first);
    work = std::max(work, run + inner + fetched);
  }
  const double below = costs_.InputBytes(largest, pack.first);
  const double above = costs_.InputBytes(largest, pack.last + 1);
  const double gradient = later ? above : 0;
  const double output = task().is_backward() ? (pack.first > 0 ? below : 0) : above;
  double stash = 0;
  for (const Head& head : heads_) {
    const int at = head.segment.first;
    if (!task().is_backward() && at > pack.first && at <= pack.last) {
      stash += costs_.InputBytes(largest, at);
    }
  }
  double need = weights + work + gradient + output + stash;
  if (next_is_here_) need += (count() - 1) * output;
  if (!lane.outputs.empty() && lane.outputs_gpu == gpu_ && !lane.outputs_on_host) {
    need += (count() - 1) * (later ? gradient : below);
  }
  out_.need[gpu_].push_back(need);
  out_.comfort[gpu_].push_back(need + below + gradient + output);
}

}  // namespace thimble::harmony
