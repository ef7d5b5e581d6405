#include <algorithm>

#include "allocator/offline/harmony/published_builder.h"

namespace thimble::harmony {

// Inputs are double-buffered with prefetch.
void PublishedBuilder::WaitForBuffers(int event, int i) {
  if (!plan_.prefetch) {
    graph_.After(event, last_output_);
  } else if (i >= 2) {
    graph_.After(event, Computed(task_, i - 2));
  } else if (before_ >= 0) {
    const int count = Count(plan_.tasks[before_]);
    if (i == 1) {
      graph_.After(event, KeyOf(before_, 0, 0, What::kDeletion));
    } else if (count >= 2) {
      graph_.After(event, Computed(before_, count - 2));
    } else if (before_that_ >= 0) {
      graph_.After(event, KeyOf(before_that_, 0, 0, What::kDeletion));
    }
  }
}

void PublishedBuilder::AddInput(int i) {
  const int layer = task().pack.first;
  const double bytes = costs_.InputBytes(task().microbatches[i], layer);
  const Pack at = {layer, layer};
  if (IsLaterBackward(task_)) {
    const int event =
        AddHostCopy(i, 0, What::kInput, layer == 0 ? Kind::kDataIn : Kind::kStashIn, at, bytes,
                    /*in=*/true);
    int source = fused_ - 1;
    while (plan_.tasks[source].pack.first > layer) --source;
    const std::vector<int>& cuts = parts_[source];
    const int part = static_cast<int>(std::find(cuts.begin(), cuts.end(), layer) - cuts.begin());
    graph_.After(event, KeyOf(source, i, part, What::kStashMessage));
    WaitForBuffers(event, i);
    return;
  }
  const bool is_data = layer == 0;
  const bool by_message = !is_data && IsFused(task_) && has_peers_ && sizes_differ_;
  const bool by_peer = !is_data && has_peers_ && !by_message;
  int event = 0;
  if (by_peer) {
    event = Add(i, 0, What::kInput, Kind::kReceive, Stream::kPeerIn, at, bytes, bytes / peer_rate_);
    graph_.Meet(event, KeyOf(task_ - 1, i, LastPart(task_ - 1), What::kOutput));
  } else {
    event = AddHostCopy(i, 0, What::kInput, is_data ? Kind::kDataIn : Kind::kBoundaryIn, at, bytes,
                        /*in=*/true);
    if (by_message) {
      graph_.After(event, KeyOf(task_ - 1, i, LastPart(task_ - 1), What::kOutputMessage));
    } else if (!is_data) {
      const int piece = IsFused(task_) ? piece_[i] : i;
      graph_.After(event, KeyOf(task_ - 1, piece, LastPart(task_ - 1), What::kOutput));
    }
  }
  WaitForBuffers(event, i);
  if (i == 0 && weights_wait_) AddWeights();
}

}  // namespace thimble::harmony
