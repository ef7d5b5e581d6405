// Builds the events of an iteration under the published rules (published_timing.h).
//
//   published_builder.cc    tasks: weights, and how they end
//   published_input.cc      inputs of microbatches, and when a buffer is free for them
//   published_forward.cc    forward microbatches: computing, stashes, outputs
//   published_backward.cc   backward microbatches: computing, gradients of inputs
//
// Events of a stream run in the order in which they are added: the order of calls is part of the
// rules.
//
// Private to allocator/offline/harmony.
#pragma once

#include <vector>

#include "allocator/offline/harmony/costs.h"
#include "allocator/offline/harmony/event_graph.h"
#include "allocator/offline/harmony/plan.h"
#include "allocator/offline/harmony/schedule.h"
#include "allocator/offline/harmony/server.h"

namespace thimble::harmony {

class PublishedBuilder {
 public:
  // The arguments must outlive it.
  PublishedBuilder(const Costs& costs, const Server& server, const Plan& plan);

  // Adds the tasks of a GPU. In dp, GPU 0 stands for all.
  void AddGpu(int gpu);
  // The actions with their times; none if two GPUs would wait for each other.
  std::vector<Action> Finish() { return graph_.Run(); }

 private:
  using Key = EventGraph::Key;

  // What an event of a task does. With task, microbatch and part (of a forward pack that is cut at
  // stashes) it names the event.
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

  const Task& task() const { return plan_.tasks[task_]; }
  bool IsFused(int t) const { return t == fused_; }
  bool IsLaterBackward(int t) const { return t > fused_; }
  static int Count(const Task& task) { return static_cast<int>(task.microbatches.size()); }

  // Where a forward pack is cut: its ends and the stashes between them.
  std::vector<int> Parts(int t) const;
  int LastPart(int t) const { return static_cast<int>(parts_[t].size()) - 2; }

  static Key KeyOf(int task, int microbatch, int part, What what) {
    return {task, microbatch, part, static_cast<int>(what)};
  }
  // The event that ends computing a microbatch.
  Key Computed(int t, int microbatch) const {
    return t < fused_ ? KeyOf(t, microbatch, LastPart(t), What::kForward)
                      : KeyOf(t, microbatch, 0, What::kBackward);
  }

  int Add(int microbatch, int part, What what, Kind kind, Stream stream, Pack layers, double bytes,
          double seconds);
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
  int before_ = -1;       // the previous task on this GPU
  int before_that_ = -1;  // and the one before it
  bool weights_wait_ = false;
  Key last_output_;  // without prefetch: what the next input waits for
  EventGraph graph_;
};

}  // namespace thimble::harmony
