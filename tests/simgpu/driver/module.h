// Modules, their kernels and their variables.
#pragma once

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
  std::vector<Bytes> parameters;  // bytes of each
  CUmodule module = nullptr;
};

struct Module {
  CUmodule handle = nullptr;
  Cubin cubin;
  std::map<std::string, CUfunction> kernels;
  std::map<std::string, Address> variables;
};

class Modules {
 public:
  CUmodule Load(const void* image);
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

// The launch of a kernel: its arguments are copied now and looked at when it would run.
struct Launch {
  CUfunction function = nullptr;
  void** parameters = nullptr;
  void** extra = nullptr;
};
Outcome LaunchWork(const char* name, const Launch& launch, Work* work);

}  // namespace simgpu
