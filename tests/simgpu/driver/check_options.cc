// check_options TEXT: says what is wrong with it, as cuInit would, before anything is started.
#include <cstdio>
#include <string>

#include "tests/simgpu/driver/options.h"

int main(int count, char** arguments) {
  simgpu::Options options;
  std::string error;
  if (count == 2 && simgpu::ParseOptions(arguments[1], &options, &error)) return 0;
  std::fprintf(stderr, "simgpu: SIMGPU_CONF: %s\n", error.c_str());
  return 1;
}
