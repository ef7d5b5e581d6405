#include "allocator/offline/harmony/published_builder.h"

namespace thimble::harmony {

void PublishedBuilder::AddBackward(int i) {
  const int size = task().microbatches[i];
  if (IsLaterBackward(task_)) AddGradientIn(i);
  const int again = Add(i, 0, What::kRecompute, Kind::kRecompute, Stream::kCompute, task().pack, 0,
                        costs_.Seconds(Pass::kForward, size, task().pack));
  if (i == 0) graph_.After(again, KeyOf(task_, 0, 0, What::kWeights));
  graph_.After(again, KeyOf(task_, i, 0, What::kInput));
  const int back = Add(i, 0, What::kBackward, Kind::kBackward, Stream::kCompute, task().pack, 0,
                       costs_.BackwardSeconds(size, task().pack));
  if (IsLaterBackward(task_)) graph_.After(back, KeyOf(task_, i, 0, What::kGradientIn));
  AddGradientOn(i);
}

void PublishedBuilder::AddGradientIn(int i) {
  const int layer = task().pack.last + 1;
  const double bytes = costs_.InputBytes(task().microbatches[i], layer);
  const Pack at = {layer, layer};
  int event = 0;
  if (has_peers_) {
    event = Add(i, 0, What::kGradientIn, Kind::kReceive, Stream::kPeerIn, at, bytes,
                bytes / peer_rate_);
    graph_.Meet(event, KeyOf(task_ - 1, i, 0, What::kGradientOn));
  } else {
    event = AddHostCopy(i, 0, What::kGradientIn, Kind::kBoundaryIn, at, bytes, /*in=*/true);
    graph_.After(event, KeyOf(task_ - 1, i, 0, What::kGradientOn));
  }
  if (!plan_.prefetch) {
    graph_.After(event, KeyOf(task_, i, 0, What::kRecompute));
  } else if (i > 0) {
    graph_.After(event, KeyOf(task_, i - 1, 0, What::kRecompute));
  } else if (before_ >= 0) {
    const int count = Count(plan_.tasks[before_]);
    if (!has_peers_ || IsLaterBackward(before_)) {
      graph_.After(event, KeyOf(before_, count - 1, 0, What::kRecompute));
    } else if (count >= 2) {
      graph_.After(event, Computed(before_, count - 2));
    } else if (before_that_ >= 0) {
      graph_.After(event, KeyOf(before_that_, 0, 0, What::kDeletion));
    }
    if (weights_wait_) AddWeights();
  }
}

void PublishedBuilder::AddGradientOn(int i) {
  const int layer = task().pack.first;
  last_output_ = KeyOf(task_, i, 0, What::kBackward);
  if (layer == 0) return;
  const double bytes = costs_.InputBytes(task().microbatches[i], layer);
  const Pack at = {layer, layer};
  int event = 0;
  if (has_peers_) {
    event = Add(i, 0, What::kGradientOn, Kind::kSend, Stream::kPeerOut, at, 0, bytes / peer_rate_);
    graph_.Meet(event, KeyOf(task_ + 1, i, 0, What::kGradientIn));
  } else {
    event = AddHostCopy(i, 0, What::kGradientOn, Kind::kBoundaryOut, at, bytes, /*in=*/false);
    last_output_ = KeyOf(task_, i, 0, What::kGradientOn);
  }
  graph_.After(event, KeyOf(task_, i, 0, What::kBackward));
}

}  // namespace thimble::harmony
