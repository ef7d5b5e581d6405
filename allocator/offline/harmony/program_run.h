// One run of a program on a server, from the first op to the last: the rules of simulator.h.
//
// Time moves from one end to the next. At each of them, all that can begin does.
//
//   R1  A queue has at most one op under way.
//   R2  An op begins only when nothing it waits for is left and there is room for what it makes.
//   R3  What is in use on a GPU is the sum of the tensors whose op has begun and which not all
//       users are done with; with what is resident, it is never above the memory of the server.
//
// Private to allocator/offline/harmony.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "allocator/offline/harmony/network.h"
#include "allocator/offline/harmony/program.h"
#include "allocator/offline/harmony/schedule.h"
#include "allocator/offline/harmony/server.h"

namespace thimble::harmony {

class ProgramRun {
 public:
  // All must outlive it.
  ProgramRun(const Program& program, const Network& network, const Server& server);

  // To the end; false if it halts, or as soon as it is certain to take more than `most_seconds`.
  // Once.
  [[nodiscard]] bool Go(double most_seconds);

  double now() const { return now_; }
  std::uint64_t work() const { return work_; }  // what was looked at
  std::vector<double> Peak() const;
  std::vector<Step> Steps() const;

 private:
  struct Times {
    double begin = 0;
    double end = 0;
  };
  struct Flow {
    int op = 0;
    double left = 0;
    double rate = 0;
  };

  int QueueOf(int gpu, Stream stream) const { return gpu * kStreams + static_cast<int>(stream); }
  const std::vector<int>& Queue(int queue) const { return program_.queues[queue]; }

  // Of what is there for the task at `place`, that which is for turns after `turn`.
  double Ahead(int gpu, int place, int turn) const;
  bool HasRoom(int op) const;
  void StartAll();
  bool StartCompute(int gpu);
  bool StartFirst(int gpu, Stream stream);
  void Start(int op, int queue);
  void Finish(int op, int queue);
  bool Advance();

  const Program& program_;
  const Network& network_;
  std::vector<double> memory_;  // by GPU: beside what is resident
  const int gpus_;
  std::vector<int> waits_;
  std::vector<int> users_;
  std::vector<Times> times_;
  std::vector<bool> started_;
  std::vector<double> bytes_;       // by op: what it makes
  std::vector<double> left_;        // by op that computes: its seconds, and those of all after it
  std::vector<std::size_t> heads_;  // by queue: all before it have been started
  std::vector<int> running_;        // by queue
  std::vector<double> used_;        // by GPU
  std::vector<double> peak_;
  std::vector<int> place_;                               // of the task that runs
  std::vector<bool> has_changed_;                        // by GPU: something may begin there
  std::vector<std::vector<double>> held_;                // by GPU and place of the task it is for
  std::vector<std::vector<std::vector<double>>> turns_;  // of this, by turn
  std::vector<Flow> flows_;
  bool flows_changed_ = false;
  std::vector<const Network::Route*> routes_;
  std::vector<double> rates_;
  double now_ = 0;
  double most_seconds_ = 0;
  bool is_too_long_ = false;
  std::uint64_t done_ = 0;
  std::uint64_t work_ = 0;
};

}  // namespace thimble::harmony
