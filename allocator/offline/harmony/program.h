// The input of the simulator: a plan as the ops of GPUs, links and the host, and the memory they
// take.
//
// Ops wait for each other. A tensor takes memory of a GPU from the beginning of the op that makes
// it to the end of the last op that uses it. What is counted, and when:
//
//   resident    weights and optimizer state of resident packs, always
//   weights     a chunk of a task's layers, from the beginning of its copy in until the last
//               microbatch has passed it; the next task on the same GPU keeps layers it shares
//   gradients   of a whole task, from its first backward until each chunk is on the host
//   work        the profile's peak of the whole pack without weights and input, while a microbatch
//               is computed
//   inputs      from the beginning of their transfer until the microbatch is computed; in a
//               backward task also the gradients that come from above
//   outputs     from the beginning of the op that makes them until the receiver has all of them,
//               even if it is busy
//   stashes     the same, until the host has them
//   kept        what the backward of a segment needs if its forward is not run again
//
// Weights come and gradients leave in chunks, so that the first layers can begin early.
//
// A task's unit of work is one segment of one microbatch.
#pragma once

#include <vector>

#include "allocator/offline/harmony/costs.h"
#include "allocator/offline/harmony/plan.h"
#include "allocator/offline/harmony/schedule.h"
#include "allocator/offline/harmony/server.h"

namespace thimble::harmony {

struct Op {
  Action action;       // without times
  int from = kNone;    // receives only: the GPU that sends
  int place = 0;       // of its task among the tasks of its GPU
  int unit = 0;        // of its task: the one that needs this op
  double seconds = 0;  // of computing and updating
  static constexpr int kNone = -1;
};

struct Tensor {
  int gpu = 0;
  int place = 0;  // of the task that needs it
  int unit = 0;   // the first that needs it
  double bytes = 0;
};

// Lists of numbers by index, stored in one array.
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
  Lists followers;         // by op: the ops that wait for it
  Lists makes;             // by op: tensors
  Lists uses;              // by op: tensors
  std::vector<int> users;  // by tensor: how many ops use it
  // By GPU and stream: its ops, in the order they are needed. Receives are listed with the
  // receiver; kPeerOut is empty.
  std::vector<std::vector<int>> queues;
  // By GPU and place of a task: the bytes to run it at all, and with the next microbatch ready.
  std::vector<std::vector<double>> need;
  std::vector<std::vector<double>> preferred;
  std::vector<std::vector<int>> units;         // of each task: how many
  std::vector<std::vector<int>> last_compute;  // the op that ends the task
  std::vector<double> resident;                // by GPU: bytes that are always in use
};

// `one_for_all`: only GPU 0 of a dp plan; its peers do the same at the same time.
Program BuildProgram(const Costs& costs, const Server& server, const Plan& plan,
                     bool one_for_all = false);

}  // namespace thimble::harmony
