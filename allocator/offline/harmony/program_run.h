// One run of a program on a server, from the first op to the last: the rules of simulator.h.
//
// Time moves from the end of one op to the next. At each end, every op that can begin does.
//
//   R1  A queue runs at most one op at a time.
//   R2  An op begins only when everything it waits for has ended and its results have room.
//   R3  The bytes in use on a GPU are the sum of the tensors whose op has begun and that some user
//       still needs; with the resident bytes they never exceed the memory of the server.
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
  // The arguments must outlive it.
  ProgramRun(const Program& program, const Network& network, const Server& server);

  // Runs to the end, once. False if it stalls, or as soon as it is certain to take more than
  // `most_seconds`.
  [[nodiscard]] bool Go(double most_seconds);

  double now() const { return now_; }
  std::uint64_t work() const { return work_; }  // ops looked at
  std::vector<double> Peak() const;
  std::vector<Action> Actions() const;

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

  // Bytes held for the task at `place` that are for units after `unit`.
  double Ahead(int gpu, int place, int unit) const;
  bool HasRoom(int op) const;
  void StartAll();
  bool StartCompute(int gpu);
  bool StartFirst(int gpu, Stream stream);
  void Start(int op, int queue);
  void Finish(int op, int queue);
  bool Advance();

  const Program& program_;
  const Network& network_;
  std::vector<double> memory_;  // by GPU: without resident bytes
  const int gpus_;
  std::vector<int> waits_;
  std::vector<int> users_;
  std::vector<Times> times_;
  std::vector<bool> started_;
  std::vector<double> bytes_;       // by op: what it makes
  std::vector<double> left_;        // by op that computes: seconds of it and of all after it
  std::vector<std::size_t> heads_;  // by queue: everything before it has begun
  std::vector<int> running_;        // by queue
  std::vector<double> used_;        // by GPU
  std::vector<double> peak_;
  std::vector<int> place_;                 // of the task that runs
  std::vector<bool> has_changed_;          // by GPU: something may begin there
  std::vector<std::vector<double>> held_;  // by GPU and place of the task that needs it
  std::vector<std::vector<std::vector<double>>> units_;  // the same, by unit
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
