// Reads the sizes of a compiled module's kernel parameters and variables: enough to check a
// launch's arguments, but not to run it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/simgpu/driver/options.h"

namespace simgpu {

struct Cubin {
  bool is_read = false;  // false: not an ELF image, nothing is known
  // Bytes of each parameter, in order, by the kernel's name.
  std::map<std::string, std::vector<Bytes>> kernels;
  std::map<std::string, Bytes> variables;
};

Cubin ReadCubin(const void* image);

}  // namespace simgpu
