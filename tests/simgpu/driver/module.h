// Modules, their kernels and their variables.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cuda.h"
#include "tests/simgpu/driver/cubin.h"
#include "tests/simgpu/driver/handles.h"
#include "tests/simgpu/driver/range_map.h"
#include "tests/simgpu/driver/stream.h"

namespace simgpu {

struct Kernel {
  std::string name;
  bool is_known = false;          // whether `parameters` says anything
  bool is_of_program = false;     // compiled into the program: see LaunchWork
  std::vector<Bytes> parameters;  // bytes of each
  CUmodule module = nullptr;
};

struct Module {
  CUmodule handle = nullptr;
  bool is_of_program = false;
  Cubin cubin;
  std::map<std::string, CUfunction> kernels;
  std::map<std::string, Address> variables;
};

class Modules {
 public:
  CUmodule Load(const void* image, bool is_of_program);
  bool Unload(CUmodule handle);
  std::shared_ptr<Module> Find(CUmodule handle) const { return modules_.Find(handle); }

  // Null handle if a module that could be read has no such kernel.
  CUfunction FindKernel(Module& module, const std::string& name);
  std::shared_ptr<Kernel> Find(CUfunction handle) const { return kernels_.Find(handle); }
  // Device memory of a variable, made when it is first asked for.
  Outcome FindVariable(Module& module, const std::string& name, Address* address, Bytes* bytes);

 private:
  std::mutex mutex_;
  HandleTable<CUmodule, Module> modules_;
  HandleTable<CUfunction, Kernel> kernels_;
};

// How many launches there were, and of how many the arguments were looked at.
struct Launches {
  std::atomic<std::uint64_t> all{0};
  std::atomic<std::uint64_t> seen{0};

  void Count(bool is_seen) {
    ++all;
    if (is_seen) ++seen;
  }
};

// The launch of a kernel: its arguments are copied now and looked at when it would run.
struct Launch {
  CUfunction function = nullptr;
  double threads = 0;
  void** parameters = nullptr;
  void** extra = nullptr;
};

inline double ThreadsOf(double grid_x, double grid_y, double grid_z, double block_x, double block_y,
                        double block_z) {
  return grid_x * grid_y * grid_z * block_x * block_y * block_z;
}

// Nobody knows how much memory a kernel touches, and it must not depend on the allocator that is
// measured. So it is estimated from the arguments:
//   - Kernels that MLIR wrote for TensorFlow say of each tensor how large it is.
//   - Others that have numbers among their arguments have a thread for each element, or a loop over
//     as many elements as one of these numbers says: 4 bytes of each for every pointer.
//   - The rest is XLA's, which gives each thread 16 bytes for every pointer.
Outcome LaunchWork(const char* name, const Launch& launch, Work* work);

}  // namespace simgpu
