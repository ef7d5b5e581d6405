// Control of the fake libcuda: what a test may set before, and see after, it drives a CudaDriver
// over libcuda_fake.so. The library exports these functions next to the cu* ones; FakeCuda (below)
// finds them in the same copy of the library that the driver has opened.
#pragma once

#include <dlfcn.h>

#include <string>

#include "cuda.h"

extern "C" {

struct FakeCudaControls {
  CUresult init_result;  // what cuInit returns
  int device_count;
  int vmm_supported;  // the attributes
  int descriptors_supported;
  int peers_reachable;
  int deinitialized;     // every call returns CUDA_ERROR_DEINITIALIZED, as after exit
  int fail_call;         // the call that fails, 0 is the next one; below 0: none
  CUresult fail_result;  // and how
  unsigned long long granularity;
  unsigned long long total_bytes;  // of each device
  void (*log)(const char* line);   // sees every call with its arguments; may be null
};

struct FakeCudaCounts {
  int live_events;
  int retained_contexts;
};

// Everything as it was when the library was loaded. No driver may be open.
void fake_cuda_reset(void);
FakeCudaControls* fake_cuda_controls(void);
FakeCudaCounts fake_cuda_counts(void);

// Events recorded on `stream` from now on do not happen before it is released.
void fake_cuda_hold(CUstream stream);
void fake_cuda_release(CUstream stream);

}  // extern "C"

namespace thimble {

// Where Bazel puts the libraries, from the folder that tests run in.
inline constexpr char kFakeLibcuda[] = "tests/conformance/libcuda_fake.so";
inline constexpr char kLibcudaWithoutSetAccess[] = "tests/conformance/libcuda_no_set_access.so";

// The fake as seen by a test: reset when made, so that tests do not depend on each other.
class FakeCuda {
 public:
  FakeCuda() : library_(dlopen(kFakeLibcuda, RTLD_NOW | RTLD_LOCAL)) {
    Symbol<decltype(fake_cuda_reset)>("fake_cuda_reset")();
  }

  FakeCudaControls& controls() {
    return *Symbol<decltype(fake_cuda_controls)>("fake_cuda_controls")();
  }
  FakeCudaCounts counts() { return Symbol<decltype(fake_cuda_counts)>("fake_cuda_counts")(); }
  void Hold(CUstream stream) { Symbol<decltype(fake_cuda_hold)>("fake_cuda_hold")(stream); }
  void Release(CUstream stream) {
    Symbol<decltype(fake_cuda_release)>("fake_cuda_release")(stream);
  }

  // Any function the library exports, by its versioned name.
  template <typename Function>
  Function* Symbol(const char* name) {
    return reinterpret_cast<Function*>(dlsym(library_, name));
  }

 private:
  void* const library_;  // stays open: drivers hold on to it as well
};

}  // namespace thimble
