// The simulated libcuda as a test of CudaDriver sees it: started anew when made, so that tests do
// not depend on each other. See tests/simgpu/driver/control.h.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "allocator/base/ids.h"
#include "cuda.h"
#include "tests/simgpu/driver/control.h"

namespace thimble {

// Where Bazel puts the libraries, from the folder that tests run in.
inline constexpr char kSimulatedLibcuda[] = "tests/simgpu/driver/libcuda.so.1";
inline constexpr char kLibcudaWithoutSetAccess[] = "tests/conformance/libcuda_no_set_access.so";

class SimulatedCuda {
 public:
  SimulatedCuda() : library_(dlopen(kSimulatedLibcuda, RTLD_NOW | RTLD_LOCAL)) { Restart(""); }

  // With two devices of 1 GiB unless `conf` says otherwise. Tests break rules on purpose, so
  // nothing is reported. No driver may be open.
  void Restart(const std::string& conf) {
    Symbol<decltype(simgpu_restart)>("simgpu_restart")(
        absl::StrCat(conf.find("gpus:") == std::string::npos ? "gpus:2," : "",
                     conf.find("memory:") == std::string::npos ? "memory:1GiB," : "",
                     conf.empty() ? "" : conf + ",", "illegal:/dev/null")
            .c_str());
  }

  // The call after the next `calls` fails; "": none does.
  void FailAfter(int calls, const std::string& error = "CUDA_ERROR_OUT_OF_MEMORY") {
    SetFault(absl::StrCat("*@", calls + 1, "=", error));
  }
  void SetFault(const std::string& fault) {
    Symbol<decltype(simgpu_fault)>("simgpu_fault")(fault.c_str());
  }

  void Watch(void (*line)(const char* text)) {
    Symbol<decltype(simgpu_watch)>("simgpu_watch")(line);
  }

  simgpu_counts counts() {
    simgpu_counts counts;
    Symbol<decltype(simgpu_get_counts)>("simgpu_get_counts")(&counts);
    return counts;
  }

  // On device 0, whose primary context the test retains.
  StreamId NewStream() {
    CUcontext context = nullptr;
    CUstream stream = nullptr;
    Symbol<decltype(cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain")(&context, 0);
    Symbol<decltype(cuCtxPushCurrent_v2)>("cuCtxPushCurrent_v2")(context);
    Symbol<decltype(cuStreamCreate)>("cuStreamCreate")(&stream, CU_STREAM_NON_BLOCKING);
    Symbol<decltype(cuCtxPopCurrent_v2)>("cuCtxPopCurrent_v2")(&context);
    Symbol<decltype(cuDevicePrimaryCtxRelease_v2)>("cuDevicePrimaryCtxRelease_v2")(0);
    return StreamId{reinterpret_cast<std::uintptr_t>(stream)};
  }

  // No work on `stream` happens until it is released; then all of it has.
  void Hold(StreamId stream) { Symbol<decltype(simgpu_hold)>("simgpu_hold")(Handle(stream)); }
  void Release(StreamId stream) {
    Symbol<decltype(simgpu_resume)>("simgpu_resume")(Handle(stream));
    Symbol<decltype(cuStreamSynchronize)>("cuStreamSynchronize")(Handle(stream));
  }

  // Any function the library exports, by its versioned name.
  template <typename Function>
  Function* Symbol(const char* name) {
    return reinterpret_cast<Function*>(dlsym(library_, name));
  }

 private:
  static CUstream Handle(StreamId stream) {
    return reinterpret_cast<CUstream>(static_cast<std::uintptr_t>(stream));
  }

  void* const library_;  // stays open: drivers hold on to it as well
};

}  // namespace thimble
