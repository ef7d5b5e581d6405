// Runs a program on a server, as a runtime would: no step has a fixed time.
//
//   - computing keeps the order of the plan; a copy begins when what it waits for is over, its
//     stream is free and there is memory, those of the earliest task first
//   - bandwidth is shared by what is under way (network.h)
//   - memory is given out so that the task that runs now is never starved by what is fetched ahead:
//     that has to leave room for all that this task may still need
//
// Never is more memory in use than the server has. A plan that comes to a halt for want of memory
// has no schedule.
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
  // All must outlive it.
  Simulator(const Costs& costs, const Server& server);

  struct Outcome {
    double seconds = 0;  // infinite if memory does not suffice, or if they are too many
    double swap_bytes = 0;
    double host_bytes = 0;  // of this, what waits on the host
  };
  // Without the steps. Where all GPUs are equal, one stands for all of a dp plan.
  // No plan that takes more than `most_seconds` is run to the end.
  Outcome Try(const Plan& plan, double most_seconds);
  std::optional<Schedule> Run(const Plan& plan);

  // What Try() has done so far: the clock of searches, the same on every machine.
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
