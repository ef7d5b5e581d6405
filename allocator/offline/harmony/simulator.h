// Runs a program on a server as a runtime would: no action has a fixed time.
//
//   - computing keeps the order of the plan; a copy begins when what it waits for has ended, its
//     stream is free and memory is available; copies of the earliest task go first
//   - bandwidth is shared by the transfers that run (network.h)
//   - prefetching never starves the running task: it leaves room for everything the task may need
//
// Memory in use never exceeds the server's. A plan that stalls for lack of memory has no schedule.
#pragma once

#include <cstdint>
#include <optional>

#include "allocator/offline/harmony/costs.h"
#include "allocator/offline/harmony/network.h"
#include "allocator/offline/harmony/plan.h"
#include "allocator/offline/harmony/schedule.h"
#include "allocator/offline/harmony/server.h"

namespace thimble::harmony {

class Simulator {
 public:
  // The arguments must outlive it.
  Simulator(const Costs& costs, const Server& server);

  struct Outcome {
    double seconds = 0;  // infinite if memory does not suffice, or above `most_seconds`
    double swap_bytes = 0;
    double host_bytes = 0;  // of these, bytes that wait on the host
  };
  // Seconds and bytes without the actions. If all GPUs are equal, one stands for all in a dp plan.
  // Stops early if the plan takes more than `most_seconds`.
  Outcome Try(const Plan& plan, double most_seconds);
  std::optional<Schedule> Run(const Plan& plan);

  // The work of Try() so far: the search's clock, the same on every machine.
  std::uint64_t work() const { return work_; }

 private:
  const Costs& costs_;
  const Server& server_;
  const Network network_;
  const std::optional<Server> one_for_all_;
  const std::optional<Network> network_of_one_;
  std::uint64_t work_ = 0;
};

}  // namespace thimble::harmony
