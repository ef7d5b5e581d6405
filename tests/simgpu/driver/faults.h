// Calls that fail on request. One fault is
//
//   NAME@K        the K-th call of NAME fails, counted from 1
//   NAME@K+       and every one after it
//   NAME/N        every N-th call
//
// A suffix "=CODE" selects another error than the usual one, as in cuMemMap@2=CUDA_ERROR_UNKNOWN.
// NAME is as in cuda.h without the version (cuMemAlloc, not cuMemAlloc_v2), or * for every call.
// Several faults have ';' between them.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "cuda.h"

namespace simgpu {

inline constexpr char kFaultGrammar[] =
    "NAME@K, NAME@K+ or NAME/N, each perhaps with =CODE, with ';' between";

struct Fault {
  std::string name;
  unsigned long first = 0;  // the call that fails; with `every`, unused
  bool sticky = false;      // and all after it
  unsigned long every = 0;
  CUresult code = CUDA_SUCCESS;  // CUDA_SUCCESS: the usual error of the call
};

bool ParseFaults(const std::string& text, std::vector<Fault>* faults);

class Faults {
 public:
  // Restarts counting. Must not run during calls.
  void Set(const std::string& text);

  // What this call of `name` must return; CUDA_SUCCESS unless it is to fail.
  CUresult Next(const char* name);

 private:
  struct Counter {
    Fault fault;
    std::atomic<unsigned long> calls{0};
  };
  std::vector<std::unique_ptr<Counter>> counters_;
};

}  // namespace simgpu
