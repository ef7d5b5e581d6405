// A plan, taken apart into what GPUs, links and the host do, and the memory that takes: the input
// of the simulator.
//
// Ops wait for each other; tensors are memory of a GPU from the beginning of the op that makes them
// to the end of the last op that uses them. What is counted, and when:
//
//   resident    weights and optimizer state of packs that stay, always
//   weights     a chunk of a task's layers, from the beginning of its copy in until its last
//               microbatch has passed it; the task after on the same GPU keeps those it shares
//   gradients   all of a task, from its first backward until each chunk is on the host
//   work        the profile's peak of the whole pack without weights and input, while a microbatch
//               is computed
//   inputs      from the beginning of their transfer until the microbatch is computed; in a
//               backward task also the gradients that come from above
//   outputs     from the beginning of the op that makes them until the receiver has all of them,
//               however long it is busy
//   stashes     the same, until the host has them
//   kept        what the backward of a segment needs that is not run again
//
// Chunks: weights come and gradients leave in pieces, so that the first layers can begin.
#pragma once

#include <vector>

#include "allocator/offline/harmony/costs.h"
#include "allocator/offline/harmony/plan.h"
#include "allocator/offline/harmony/schedule.h"
#include "allocator/offline/harmony/server.h"

namespace thimble::harmony {

struct Op {
  Step step;           // without times
  int from = kNone;    // the GPU that sends: receives only
  int place = 0;       // of its task among those of its GPU
  int turn = 0;        // of its task that it is for: one segment of one microbatch
  double seconds = 0;  // of computing and updating
  static constexpr int kNone = -1;
};

struct Tensor {
  int gpu = 0;
  int place = 0;  // of the task it is for
  int turn = 0;   // and of its turns the first
  double bytes = 0;
};

// Lists of numbers by index, in one array.
class Lists {
 public:
  void Add(int index, int value) { pairs_.push_back({index, value}); }
  void Finish(int count);
  const int* begin(int index) const { return values_.data() + starts_[index]; }
  const int* end(int index) const { return values_.data() + starts_[index + 1]; }

 private:
  struct Pair {
    int index = 0;
    int value = 0;
  };
  std::vector<Pair> pairs_;
  std::vector<int> starts_;
  std::vector<int> values_;
};

struct Program {
  std::vector<Op> ops;
  std::vector<Tensor> tensors;
  std::vector<int> waits;  // by op: how many ops it waits for
  Lists followers;         // by op: which wait for it
  Lists makes;             // by op: tensors
  Lists uses;              // by op: tensors
  std::vector<int> users;  // by tensor: how many ops use it
  // By GPU and stream: its ops, in the order of need. Receives are with the receiver; nothing is in
  // kPeerOut.
  std::vector<std::vector<int>> queues;
  // By GPU and place of a task: what it takes to run it at all, and with the next microbatch ready.
  std::vector<std::vector<double>> need;
  std::vector<std::vector<double>> comfort;
  std::vector<std::vector<int>> turns;         // how many the task has
  std::vector<std::vector<int>> last_compute;  // the op after which the task is over
  std::vector<double> resident;                // by GPU: bytes that are there all the time
};

// `one_for_all`: of a dp plan, GPU 0 alone, whose peers do the same at the same time.
Program BuildProgram(const Costs& costs, const Server& server, const Plan& plan,
                     bool one_for_all = false);

}  // namespace thimble::harmony
