// Everything a simulated machine consists of. One per process, made by the first call and never
// taken apart: programs call the driver while the process ends.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "tests/simgpu/driver/clock.h"
#include "tests/simgpu/driver/contexts.h"
#include "tests/simgpu/driver/faults.h"
#include "tests/simgpu/driver/graph.h"
#include "tests/simgpu/driver/handles.h"
#include "tests/simgpu/driver/host_memory.h"
#include "tests/simgpu/driver/log.h"
#include "tests/simgpu/driver/memory.h"
#include "tests/simgpu/driver/module.h"
#include "tests/simgpu/driver/options.h"
#include "tests/simgpu/driver/place.h"
#include "tests/simgpu/driver/pools.h"
#include "tests/simgpu/driver/races.h"
#include "tests/simgpu/driver/results.h"
#include "tests/simgpu/driver/stream.h"

namespace simgpu {

class Simulator {
 public:
  static Simulator& Get();

  // cuInit: from now on calls are served. SIMGPU_CONF is read when the simulator is made; what was
  // wrong with it is printed once, here.
  CUresult Initialize();
  bool is_initialized() const { return is_initialized_.load(std::memory_order_relaxed); }

  bool IsDevice(int device) const { return device >= 0 && device < options.gpus; }

  // The stream that `handle` means to this thread, or null. Null and the two special handles are
  // the default stream of the current context.
  std::shared_ptr<Stream> FindStream(CUstream handle) const;
  // Runs `work` on the stream that `handle` means, or adds it to the graph it captures.
  Outcome Start(CUstream handle, const Work& work);
  // Waits for all streams of a device.
  Outcome SynchronizeDevice(int device);

  // In the order in which they need each other.
  std::string error;  // what is wrong with the options; "": nothing
  Options options;
  Log log;
  Faults faults;
  Clock clock;
  Memory memory;
  HostMemory host_memory;
  Traffic traffic;
  Races races;
  Pools pools;
  Contexts contexts;
  Results results;
  HandleTable<CUstream, Stream> streams;
  HandleTable<CUevent, Event> events;
  Modules modules;
  Launches launches;
  HandleTable<CUgraph, Graph> graphs;
  HandleTable<CUgraphNode, Node> nodes;
  HandleTable<CUgraphExec, Executable> executables;

 private:
  friend void Restart(const char* conf);
  explicit Simulator(const std::string& conf);

  std::atomic<bool> is_initialized_{false};
};

// A new machine with other options, for tests. Nobody may be inside a call; handles and addresses
// of the old machine mean nothing on the new one.
void Restart(const char* conf);

}  // namespace simgpu
