// Reads the sizes of a compiled module's kernel parameters and variables: enough to check a
// launch's arguments, but not to run it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/simgpu/driver/options.h"

namespace simgpu {

struct Cubin {
  bool is_read = false;  // it has no other kernels and variables than these
  // Bytes of each parameter, in order, by the kernel's name.
  std::map<std::string, std::vector<Bytes>> kernels;
  std::map<std::string, Bytes> variables;
};

// An ELF image, or a container of some, of which those for `capability` are read.
Cubin ReadCubin(const void* image, int capability);

}  // namespace simgpu
