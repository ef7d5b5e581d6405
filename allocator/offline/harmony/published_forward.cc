#include <algorithm>

#include "allocator/offline/harmony/published_builder.h"
#include "allocator/offline/harmony/published_timing.h"

namespace thimble::harmony {

void PublishedBuilder::AddForward(int i) {
  const std::vector<int>& cuts = parts_[task_];
  const std::vector<int> stashes = StashLayers(plan_, task_);
  for (int part = 0; part <= LastPart(task_); ++part) {
    const Pack layers = {cuts[part], cuts[part + 1] - 1};
    const int event = Add(i, part, What::kForward, Kind::kForward, Stream::kCompute, layers, 0,
                          costs_.Seconds(Pass::kForward, task().microbatches[i], layers));
    if (part == 0) {
      if (i == 0) graph_.After(event, KeyOf(task_, 0, 0, What::kWeights));
      graph_.After(event, KeyOf(task_, i, 0, What::kInput));
    }
    const bool has_stash = std::find(stashes.begin(), stashes.end(), layers.first) != stashes.end();
    if (!plan_.prefetch && has_stash) {
      graph_.After(event, KeyOf(task_, i, part, What::kStash));
    }
  }
}

void PublishedBuilder::AddStashes(int i) {
  const std::vector<int>& cuts = parts_[task_];
  const std::vector<int> stashes = StashLayers(plan_, task_);
  for (int part = 0; part <= LastPart(task_); ++part) {
    const int layer = cuts[part];
    if (std::find(stashes.begin(), stashes.end(), layer) == stashes.end()) continue;
    const double bytes = costs_.InputBytes(task().microbatches[i], layer);
    const int event =
        AddHostCopy(i, part, What::kStash, Kind::kStashOut, {layer, layer}, bytes, /*in=*/false);
    if (part > 0) {
      graph_.After(event, KeyOf(task_, i, part - 1, What::kForward));
    } else {
      graph_.After(event, KeyOf(task_, i, 0, What::kInput));
      if (plan_.prefetch && i > 0) graph_.After(event, Computed(task_, i - 1));
      if (plan_.prefetch && i == 0 && before_ >= 0) {
        graph_.After(event, KeyOf(before_, 0, 0, What::kDeletion));
      }
    }
    int owner = gpu_;
    for (const Task& other : plan_.tasks) {
      if (has_peers_ && other.is_backward() && other.pack.first == layer) owner = other.gpu;
    }
    AddMessages(i, part, What::kStashMessage, layer, owner, KeyOf(task_, i, part, What::kStash));
  }
}

// Sends what microbatch `i` left on the host to the process of `owner`, as the backward
// microbatches that it completes.
void PublishedBuilder::AddMessages(int i, int part, What what, int layer, int owner,
                                   const Key& after) {
  const std::vector<int>& sizes = plan_.tasks[fused_].microbatches;
  const std::vector<int> bounds = SampleBounds(sizes);
  for (std::size_t j = 0; j < sizes.size(); ++j) {
    if (piece_[j] != i) continue;
    const double copied = owner == gpu_ ? 0 : 2 * costs_.InputBytes(sizes[j], layer);
    Action action;
    action.kind = Kind::kMessage;
    action.stream = Stream::kHost;
    action.gpu = gpu_;
    action.task = task_;
    action.layers = {layer, layer};
    action.first_sample = bounds[j];
    action.end_sample = bounds[j + 1];
    const Key key = KeyOf(task_, static_cast<int>(j), part, what);
    graph_.After(graph_.Add(key, action, copied / message_rate_), after);
  }
}

void PublishedBuilder::AddOutput(int i) {
  const int last = LastPart(task_);
  const int layer = task().pack.last + 1;
  const double bytes = costs_.InputBytes(task().microbatches[i], layer);
  const bool by_message = task_ == fused_ - 1 && has_peers_ && sizes_differ_;
  const Pack at = {layer, layer};
  int event = 0;
  if (has_peers_ && !by_message) {
    event = Add(i, last, What::kOutput, Kind::kSend, Stream::kPeerOut, at, 0, bytes / peer_rate_);
    graph_.Meet(event, KeyOf(task_ + 1, i, 0, What::kInput));
  } else {
    event = AddHostCopy(i, last, What::kOutput, Kind::kBoundaryOut, at, bytes, /*in=*/false);
  }
  graph_.After(event, KeyOf(task_, i, last, What::kForward));
  last_output_ = KeyOf(task_, i, last, has_peers_ ? What::kForward : What::kOutput);
  if (by_message) {
    AddMessages(i, last, What::kOutputMessage, layer, plan_.tasks[fused_].gpu,
                KeyOf(task_, i, last, What::kOutput));
  }
}

}  // namespace thimble::harmony
