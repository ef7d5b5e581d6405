#include "allocator/offline/harmony/published_builder.h"

#include <algorithm>
#include <set>

#include "allocator/offline/harmony/published_timing.h"

namespace thimble::harmony {
namespace {

constexpr double kDeletionSeconds = 0.040;

}  // namespace

PublishedBuilder::PublishedBuilder(const Costs& costs, const Server& server, const Plan& plan)
    : costs_(costs),
      plan_(plan),
      has_peers_(plan.mode == Mode::kPipeline && plan.gpus > 1),
      fused_(plan.fused()) {
  std::set<int> used;
  for (const Task& task : plan.tasks) used.insert(task.gpu);
  sharers_ = has_peers_ ? static_cast<int>(used.size()) : plan.gpus;
  host_rate_ = server.HostBytesPerSecond() / sharers_;
  message_rate_ = server.message_bytes_per_second / sharers_;
  peer_rate_ = server.peer_bytes_per_second;
  update_speed_ = server.update_speed;
  const Task& backward = plan.tasks[fused_];
  const std::vector<int>& forward =
      fused_ == 0 ? backward.microbatches : plan.tasks[0].microbatches;
  piece_ = LastPiece(forward, backward.microbatches);
  sizes_differ_ = forward != backward.microbatches;
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    parts_.push_back(Parts(static_cast<int>(i)));
  }
}

void PublishedBuilder::AddGpu(int gpu) {
  gpu_ = gpu;
  before_ = before_that_ = -1;
  for (std::size_t i = 0; i < plan_.tasks.size(); ++i) {
    if (has_peers_ && plan_.tasks[i].gpu != gpu) continue;
    task_ = static_cast<int>(i);
    AddTask();
    before_that_ = before_;
    before_ = task_;
  }
}

std::vector<int> PublishedBuilder::Parts(int t) const {
  const Pack pack = plan_.tasks[t].pack;
  std::vector<int> cuts(1, pack.first);
  if (t < fused_) {
    for (const int layer : StashLayers(plan_, t)) {
      if (layer != pack.first) cuts.push_back(layer);
    }
  }
  cuts.push_back(pack.last + 1);
  return cuts;
}

int PublishedBuilder::Add(int microbatch, int part, What what, Kind kind, Stream stream,
                          Pack layers, double bytes, double seconds) {
  Action action;
  action.kind = kind;
  action.stream = stream;
  action.gpu = gpu_;
  action.task = task_;
  action.layers = layers;
  action.bytes = bytes;
  const std::vector<int> bounds = SampleBounds(task().microbatches);
  action.first_sample = microbatch < 0 ? 0 : bounds[microbatch];
  action.end_sample = microbatch < 0 ? bounds.back() : bounds[microbatch + 1];
  return graph_.Add(KeyOf(task_, std::max(0, microbatch), part, what), action, seconds);
}

void PublishedBuilder::AddTask() {
  weights_wait_ = before_ >= 0 && plan_.prefetch && (!has_peers_ || IsLaterBackward(task_));
  if (!weights_wait_) AddWeights();
  last_output_ = KeyOf(task_, 0, 0, What::kWeights);
  for (int i = 0; i < Count(task()); ++i) {
    AddInput(i);
    if (task().is_backward()) {
      AddBackward(i);
    } else {
      AddForward(i);
      AddStashes(i);
      AddOutput(i);
    }
  }
  if (task().is_backward()) {
    AddEndOfBackward();
  } else {
    AddEndOfForward();
  }
}

void PublishedBuilder::AddWeights() {
  weights_wait_ = false;
  const double bytes = costs_.WeightBytes(task().pack);
  const int event =
      AddHostCopy(-1, 0, What::kWeights, Kind::kWeightsIn, task().pack, bytes, /*in=*/true);
  if (before_ < 0) return;
  graph_.After(event, plan_.prefetch ? Computed(before_, Count(plan_.tasks[before_]) - 1)
                                     : KeyOf(before_, 0, 0, What::kDeletion));
}

void PublishedBuilder::AddEndOfForward() {
  const int event = Add(-1, 0, What::kDeletion, Kind::kDelete, Stream::kCompute, task().pack, 0,
                        kDeletionSeconds);
  if (!has_peers_ && !plan_.prefetch) {
    graph_.After(event, KeyOf(task_, Count(task()) - 1, LastPart(task_), What::kOutput));
  }
}

void PublishedBuilder::AddEndOfBackward() {
  const int last = Count(task()) - 1;
  const double bytes = costs_.WeightBytes(task().pack);
  const bool waits_for_output = !has_peers_ && !plan_.prefetch && task().pack.first > 0;
  const bool reduces = !has_peers_ && sharers_ > 1;
  if (reduces) {
    const double moved = 2.0 * (sharers_ - 1) / sharers_ * bytes;
    const int event = Add(-1, 0, What::kReduction, Kind::kReduce, Stream::kCompute, task().pack,
                          moved, moved / peer_rate_);
    if (waits_for_output) graph_.After(event, KeyOf(task_, last, 0, What::kGradientOn));
  }
  const int out = AddHostCopy(-1, 0, What::kWeightGradient, Kind::kGradientOut, task().pack, bytes,
                              /*in=*/false);
  graph_.After(out, KeyOf(task_, last, 0, What::kBackward));
  if (reduces) {
    graph_.After(out, KeyOf(task_, 0, 0, What::kReduction));
  } else if (waits_for_output) {
    graph_.After(out, KeyOf(task_, last, 0, What::kGradientOn));
  }
  const int deletion = Add(-1, 0, What::kDeletion, Kind::kDelete, Stream::kCompute, task().pack, 0,
                           kDeletionSeconds);
  graph_.After(deletion, KeyOf(task_, 0, 0, What::kWeightGradient));
  const int update = Add(-1, 0, What::kUpdate, Kind::kUpdate, Stream::kHost, task().pack, 0,
                         costs_.UpdateSeconds(task().pack) / update_speed_);
  graph_.After(update, KeyOf(task_, 0, 0, What::kWeightGradient));
}

}  // namespace thimble::harmony
