// What a compiled module says about itself: the sizes of its kernels' parameters and of its
// variables. Enough to look at what a launch is given, not to run it.
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
