#include "tests/simgpu/libraries/driver.h"

#include <dlfcn.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

namespace simgpu {

void* FindInDriver(const char* symbol) {
  static void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  return driver ? dlsym(driver, symbol) : nullptr;
}

namespace {

// What exists only in the simulated driver. The lookup also works through a front before it.
template <typename Function>
Function FindInSimulator(const char* name) {
  void* found = nullptr;
  const CUresult result = SIMGPU_DRIVER(cuGetProcAddress)(name, &found, CUDA_VERSION, 0, nullptr);
  return result == CUDA_SUCCESS ? reinterpret_cast<Function>(found) : nullptr;
}

}  // namespace

bool Submit(const simgpu_work& work) {
  static const auto submit = FindInSimulator<CUresult (*)(const simgpu_work*)>("simgpu_submit");
  return submit == nullptr || submit(&work) == CUDA_SUCCESS;
}

double BytesOf(int math) {
  constexpr double kBytes[] = {8, 4, 4, 2, 1};
  return kBytes[math];
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
  static const auto check =
      simgpu::FindInSimulator<CUresult (*)(const void*, const char*)>("simgpu_check");
  return pointer != nullptr && check != nullptr && check(pointer, name) != CUDA_SUCCESS;
}

int simgpu_run(const char* name, void* stream, double flops, int math, double bytes, unsigned count,
               ...) {
  std::vector<const void*> pointers;
  va_list rest;
  va_start(rest, count);
  for (unsigned i = 0; i < count; ++i) pointers.push_back(va_arg(rest, const void*));
  va_end(rest);
  return !simgpu::Submit({name, static_cast<CUstream>(stream), flops, /*simd_flops=*/0, math, bytes,
                          /*link_bytes=*/0, pointers.data(), pointers.size()});
}
