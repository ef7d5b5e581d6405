// Builds the program of a plan task by task, in the order of the plan.
//
//   program.cc            tasks, and what they pass to the next task
//   program_need.cc       the memory that a task takes to run
//   program_weights.cc    weights in; gradients summed, out and applied
//   program_inputs.cc     the inputs of a microbatch
//   program_forward.cc    forward tasks, and what they leave for the backward
//   program_backward.cc   backward tasks
//
// Ops enter the queues of their GPU in the order in which they are added: the order of calls is
// part of the program.
//
// Private to allocator/offline/harmony.
#pragma once

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "allocator/offline/harmony/program.h"

namespace thimble::harmony {

// A tensor with some samples of a boundary, and the op that delivers it.
struct Piece {
  int first_sample = 0;
  int end_sample = 0;
  int tensor = -1;
  int op = 0;
};

// Weights or activations of some layers.
struct Held {
  Pack layers;
  int tensor = 0;
  int op = 0;    // that delivers them
  int task = 0;  // that fetched them
};

// Sorted, each once.
void SortCuts(std::vector<int>& cuts);

// The state of one chain of tasks: one per GPU in dp, one in all in pp.
struct Lane {
  std::vector<Piece> outputs;  // of the previous task
  int outputs_gpu = 0;         // where they are
  bool outputs_on_host = false;
  std::map<int, std::vector<Piece>> stashes;              // by layer; op: when the host has it
  std::map<std::pair<int, int>, std::vector<Held>> kept;  // activations by task and microbatch
};

class ProgramBuilder {
 public:
  // The arguments must outlive it.
  ProgramBuilder(const Costs& costs, const Server& server, const Plan& plan, bool one_for_all);

  Program Build();

 private:
  struct Before {  // the previous task on a GPU
    Pack pack;
    std::vector<Held> weights;
    bool is_there = false;
  };

  const Task& task() const { return plan_.tasks[task_]; }
  int count() const { return static_cast<int>(task().microbatches.size()); }
  int size(int i) const { return task().microbatches[i]; }
  double share() const { return 1.0 / sharers_; }

  // The unit of a microbatch and the current segment, in the order of segments.
  int UnitOf(int i, int segment = 0) const { return i * units_ + segment; }

  int AddOp(Kind kind, Stream stream, Pack layers, int first_sample, int end_sample, double bytes,
            double seconds, int unit);
  int AddTensor(double bytes, int unit = 0) {
    out_.tensors.push_back({gpu_, place_, unit, bytes});
    return static_cast<int>(out_.tensors.size()) - 1;
  }
  void Wait(int op, int other) {
    out_.followers.Add(other, op);
    ++out_.waits[op];
  }
  int Copy(Kind kind, Stream stream, int layer, int first_sample, int end_sample, int unit) {
    return AddOp(kind, stream, {layer, layer}, first_sample, end_sample,
                 costs_.InputBytes(end_sample - first_sample, layer), 0, unit);
  }

  // A segment of a later backward task that needs activations of the forward.
  struct Later {
    int task = 0;
    Segment segment;
  };
  std::vector<Later> LaterSegments() const;

  Pack SegmentWith(int layer) const {
    const std::vector<Segment> segments = SegmentsDown(task());
    return std::find_if(segments.begin(), segments.end(),
                        [layer](const Segment& one) { return one.layers.first <= layer; })
        ->layers;
  }

  int GpuOf(const Lane& lane) const {
    return plan_.mode == Mode::kPipeline ? task().gpu : static_cast<int>(&lane - lanes_.data());
  }
  // Fetches the weights of all lanes first: each waits for parts that the others fetch.
  void BeginTask();
  void AddWeights();
  void BuildTask(Lane& lane);
  void HandOverByHost();
  void BuildNeeds(const Lane& lane);
  // The available samples of the boundary below or above, as pieces on this GPU.
  void TakeOutputs(Lane& lane);
  std::vector<Piece> InputOf(Lane& lane, int i, int layer, int unit);
  void UsePieces(const std::vector<Piece>& pieces, int i, int first_op, int last_op);
  void WaitForWeights(int op, Pack layers);
  void UseWeights(int op, Pack layers);
  // The activations of a segment that were kept for microbatch `i`, back on this GPU.
  std::vector<Held> Fetched(Lane& lane, int i, const Segment& segment, int unit);
  void BuildForward(Lane& lane, int i);
  std::vector<int> ForwardCuts(int i) const;
  void KeepActivations(Lane& lane, int i, const Later& later, Pack layers, int op);
  void StashInput(Lane& lane, int i, int layer, int before);
  void BuildBackward(Lane& lane, int i);
  void BuildGradients();
  void Gather(Pack layers, const std::vector<int>& updates);

  const Costs& costs_;
  const Server& server_;
  const Plan& plan_;
  const int fused_;
  const std::vector<Later> later_;
  Program out_;
  int sharers_ = 1;  // GPUs that fetch weights and sum gradients together
  std::vector<Lane> lanes_;
  std::vector<Before> before_;  // by GPU
  int task_ = 0;
  int gpu_ = 0;
  int place_ = 0;
  int units_ = 1;               // of a microbatch
  std::vector<int> cuts_;       // between chunks of the pack
  std::vector<Held> weights_;   // of this task
  std::vector<int> gradients_;  // tensors by chunk, of this task and lane
  std::vector<Piece> outputs_;  // of this task so far
  std::vector<Piece> arrived_;  // boundary pieces on this GPU
  bool next_is_here_ = false;   // the next task of the lane runs on this GPU
  struct Ready {
    int gpu = 0;
    int place = 0;
    int op = 0;
    int tensor = 0;
  };
  std::vector<std::vector<Ready>> reduce_;  // by chunk: the last backward of each lane
};

}  // namespace thimble::harmony
