#include "tests/simgpu/libraries/driver.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <unordered_set>

namespace simgpu {

void* FindInDriver(const char* symbol) {
  static void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  return driver ? dlsym(driver, symbol) : nullptr;
}

}  // namespace simgpu

void simgpu_note_call(const char* name) {
  static const bool wanted = std::getenv("SIMGPU_STUBS") != nullptr;
  if (!wanted) return;
  static std::mutex mutex;
  static std::unordered_set<std::string> seen;
  std::lock_guard<std::mutex> lock(mutex);
  if (seen.insert(name).second) std::fprintf(stderr, "simgpu: stub %s\n", name);
}

int simgpu_bad_pointer(const void* pointer, const char* name) {
  // Exists only in the simulated driver. The lookup also works through a front before the driver.
  using Check = CUresult (*)(const void*, const char*);
  static const auto check = [] {
    void* found = nullptr;
    const CUresult result =
        SIMGPU_DRIVER(cuGetProcAddress)("simgpu_check", &found, CUDA_VERSION, 0, nullptr);
    return result == CUDA_SUCCESS ? reinterpret_cast<Check>(found) : nullptr;
  }();
  return pointer != nullptr && check != nullptr && check(pointer, name) != CUDA_SUCCESS;
}
