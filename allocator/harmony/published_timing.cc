#include "allocator/harmony/published_timing.h"

#include <algorithm>
#include <limits>
#include <set>

#include "allocator/harmony/event_graph.h"

namespace thimble::harmony {
namespace {

constexpr double kDeletionSeconds = 0.040;

// What an event of a task is about; with task, microbatch and part (of a forward pack that is cut
// at stashes) it names the event.
enum class What {
  kWeights,
  kInput,
  kForward,
  kStash,
  kStashMessage,
  kOutput,
  kOutputMessage,
  kRecompute,
  kBackward,
  kGradientIn,
  kGradientOn,
  kWeightGradient,
  kDeletion,
  kReduction,
  kUpdate
};

class Builder {
 public:
  Builder(const Costs& costs, const Server& server, const Plan& plan)
      : costs_(costs),
        plan_(plan),
        has_peers_(plan.mode == Mode::kPipeline && plan.gpus > 1),
        layers_(costs.layer_count()),
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

  void Gpu(int gpu) {
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
  std::vector<Step> Finish() { return graph_.Run(); }

 private:
  using Key = EventGraph::Key;

  const Task& task() const { return plan_.tasks[task_]; }
  bool IsFused(int t) const { return t == fused_; }
  bool IsLaterBackward(int t) const { return t > fused_; }
  static int Count(const Task& task) { return static_cast<int>(task.microbatches.size()); }

  // Where a forward pack is cut: its ends, and the stashes between.
  std::vector<int> Parts(int t) const {
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
  int LastPart(int t) const { return static_cast<int>(parts_[t].size()) - 2; }

  static Key KeyOf(int task, int microbatch, int part, What what) {
    return {task, microbatch, part, static_cast<int>(what)};
  }
  // The end of the computing of a microbatch.
  Key Computed(int t, int microbatch) const {
    return t < fused_ ? KeyOf(t, microbatch, LastPart(t), What::kForward)
                      : KeyOf(t, microbatch, 0, What::kBackward);
  }

  int Add(int microbatch, int part, What what, Kind kind, Stream stream, Pack layers, double bytes,
          double seconds) {
    Step step;
    step.kind = kind;
    step.stream = stream;
    step.gpu = gpu_;
    step.task = task_;
    step.layers = layers;
    step.bytes = bytes;
    const std::vector<int> bounds = SampleBounds(task().microbatches);
    step.first_sample = microbatch < 0 ? 0 : bounds[microbatch];
    step.end_sample = microbatch < 0 ? bounds.back() : bounds[microbatch + 1];
    return graph_.Add(KeyOf(task_, std::max(0, microbatch), part, what), step, seconds);
  }
  int AddHostCopy(int microbatch, int part, What what, Kind kind, Pack layers, double bytes,
                  bool in) {
    return Add(microbatch, part, what, kind, in ? Stream::kIn : Stream::kOut, layers, bytes,
               bytes / host_rate_);
  }

  void AddTask();
  void AddWeights();
  void AddInput(int i);
  void WaitForBuffers(int event, int i);
  void AddForward(int i);
  void AddStashes(int i);
  void AddMessages(int i, int part, What what, int layer, int owner, const Key& after);
  void AddOutput(int i);
  void AddBackward(int i);
  void AddGradientIn(int i);
  void AddGradientOn(int i);
  void AddEndOfForward();
  void AddEndOfBackward();

  const Costs& costs_;
  const Plan& plan_;
  const bool has_peers_;
  const int layers_;
  const int fused_;
  int sharers_ = 1;
  double host_rate_ = 0;
  double message_rate_ = 0;
  double peer_rate_ = 0;
  double update_speed_ = 1;
  bool sizes_differ_ = false;
  std::vector<int> piece_;               // by backward microbatch: the forward one it comes from
  std::vector<std::vector<int>> parts_;  // by task
  int gpu_ = 0;
  int task_ = 0;
  int before_ = -1;       // the task before on this GPU
  int before_that_ = -1;  // and the one before that
  bool weights_wait_ = false;
  Key last_output_;  // what the next input waits for, without prefetch
  EventGraph graph_;
};

void Builder::AddWeights() {
  weights_wait_ = false;
  const double bytes = costs_.WeightBytes(task().pack);
  const int event =
      AddHostCopy(-1, 0, What::kWeights, Kind::kWeightsIn, task().pack, bytes, /*in=*/true);
  if (before_ < 0) return;
  graph_.After(event, plan_.prefetch ? Computed(before_, Count(plan_.tasks[before_]) - 1)
                                     : KeyOf(before_, 0, 0, What::kDeletion));
}

// Inputs are double-buffered with prefetch.
void Builder::WaitForBuffers(int event, int i) {
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

void Builder::AddInput(int i) {
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

void Builder::AddStashes(int i) {
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

// What microbatch `i` left on the host goes on to the process of `owner`, as the backward
// microbatches that it completes.
void Builder::AddMessages(int i, int part, What what, int layer, int owner, const Key& after) {
  const std::vector<int>& sizes = plan_.tasks[fused_].microbatches;
  const std::vector<int> bounds = SampleBounds(sizes);
  for (std::size_t j = 0; j < sizes.size(); ++j) {
    if (piece_[j] != i) continue;
    const double copied = owner == gpu_ ? 0 : 2 * costs_.InputBytes(sizes[j], layer);
    Step step;
    step.kind = Kind::kMessage;
    step.stream = Stream::kHost;
    step.gpu = gpu_;
    step.task = task_;
    step.layers = {layer, layer};
    step.first_sample = bounds[j];
    step.end_sample = bounds[j + 1];
    const Key key = KeyOf(task_, static_cast<int>(j), part, what);
    graph_.After(graph_.Add(key, step, copied / message_rate_), after);
  }
}

void Builder::AddOutput(int i) {
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

void Builder::AddForward(int i) {
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

void Builder::AddGradientIn(int i) {
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

void Builder::AddGradientOn(int i) {
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

void Builder::AddBackward(int i) {
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

void Builder::AddEndOfForward() {
  const int event = Add(-1, 0, What::kDeletion, Kind::kDelete, Stream::kCompute, task().pack, 0,
                        kDeletionSeconds);
  if (!has_peers_ && !plan_.prefetch) {
    graph_.After(event, KeyOf(task_, Count(task()) - 1, LastPart(task_), What::kOutput));
  }
}

void Builder::AddEndOfBackward() {
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

void Builder::AddTask() {
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

}  // namespace

std::vector<int> LastPiece(const std::vector<int>& from, const std::vector<int>& to) {
  const std::vector<int> ends = SampleBounds(from);
  std::vector<int> pieces;
  int end = 0;
  int piece = 0;
  for (const int size : to) {
    end += size;
    while (ends[piece + 1] < end) ++piece;
    pieces.push_back(piece);
  }
  return pieces;
}

std::vector<int> StashLayers(const Plan& plan, int task) {
  std::vector<int> layers;
  const Pack pack = plan.tasks[task].pack;
  for (std::size_t i = plan.tasks.size(); i-- > 0;) {
    if (!plan.tasks[i].is_backward()) break;
    const int head = plan.tasks[i].pack.first;
    if (head >= pack.first && head <= pack.last) layers.push_back(head);
  }
  return layers;  // backward packs descend, so these ascend
}

double PublishedTaskBytes(const Costs& costs, const Plan& plan, int task) {
  const Task& one = plan.tasks[task];
  const int size = one.microbatches[0];
  const double input = costs.InputBytes(size, one.pack.first);
  const double output = costs.InputBytes(size, one.pack.last + 1);
  double bytes = costs.PeakBytes(one.pass, size, one.pack) + input + output;
  if (one.is_backward()) return bytes + input + (one.pack.first > 0 ? input : 0);
  for (const int layer : StashLayers(plan, task)) bytes += costs.InputBytes(size, layer);
  return bytes;
}

Schedule TimePublished(const Costs& costs, const Server& server, const Plan& plan) {
  Builder builder(costs, server, plan);
  const bool has_peers = plan.mode == Mode::kPipeline && plan.gpus > 1;
  for (int gpu = 0; gpu < (has_peers ? plan.gpus : 1); ++gpu) builder.Gpu(gpu);
  Schedule schedule;
  schedule.plan = plan;
  schedule.steps = builder.Finish();
  if (schedule.steps.empty()) {
    schedule.seconds = std::numeric_limits<double>::infinity();
    return schedule;
  }
  if (!has_peers) {
    const std::vector<Step> first = schedule.steps;
    for (int gpu = 1; gpu < plan.gpus; ++gpu) {
      for (Step step : first) {
        step.gpu = gpu;
        schedule.steps.push_back(step);
      }
    }
  }
  schedule.peak_bytes.assign(plan.gpus, 0);
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    const double bytes = PublishedTaskBytes(costs, plan, static_cast<int>(i));
    for (int gpu = 0; gpu < plan.gpus; ++gpu) {
      if (has_peers && plan.tasks[i].gpu != gpu) continue;
      schedule.peak_bytes[gpu] = std::max(schedule.peak_bytes[gpu], bytes);
    }
  }
  AddUp(schedule);
  return schedule;
}

}  // namespace thimble::harmony
