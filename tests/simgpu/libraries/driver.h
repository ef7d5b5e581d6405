// Access from a library to the driver.
//
// Like NVIDIA's libraries, these do not name libcuda.so.1 as a dependency: they open it when they
// first need it, and use the library of that name that the process has already loaded.
#pragma once

#include <cuda.h>

#include "tests/simgpu/driver/control.h"

#define SIMGPU_API extern "C" __attribute__((visibility("default")))

// A function of the driver, by the name that cuda.h gives it: SIMGPU_DRIVER(cuMemAlloc)(&p, n).
// The driver without that function, or none at all, is CUDA_ERROR_NOT_FOUND.
#define SIMGPU_DRIVER(name)                                                            \
  ([]() -> const ::simgpu::DriverFunction<decltype(name)>& {                           \
    static const ::simgpu::DriverFunction<decltype(name)> function(SIMGPU_TEXT(name)); \
    return function;                                                                   \
  }())
#define SIMGPU_TEXT(name) SIMGPU_TEXT_OF(name)
#define SIMGPU_TEXT_OF(name) #name

// Also for the generated C sources. The first notes the call of a function that nobody wrote by
// hand (SIMGPU_STUBS=1 prints each name once); the second asks the driver about a pointer. The
// third does work on a stream, with `count` pointers; not 0 if one of them cannot be used.
extern "C" void simgpu_note_call(const char* name);
extern "C" int simgpu_bad_pointer(const void* pointer, const char* name);
extern "C" int simgpu_run(const char* name, void* stream, double flops, int math, double bytes,
                          unsigned count, ...);

namespace simgpu {

// Hands the work to the driver. False if that refuses it.
bool Submit(const simgpu_work& work);

// Of an element, in bytes; see control.h for `math`.
double BytesOf(int math);

// Every handle of a library begins with its stream. Null has the default stream.
inline CUstream StreamOf(const void* handle) {
  return handle ? *static_cast<CUstream const*>(handle) : nullptr;
}

// Null if there is no driver or it has no such symbol.
void* FindInDriver(const char* symbol);

template <typename Signature>
class DriverFunction;

template <typename... Arguments>
class DriverFunction<CUresult(Arguments...)> {
 public:
  explicit DriverFunction(const char* name)
      : function_(reinterpret_cast<CUresult (*)(Arguments...)>(FindInDriver(name))) {}

  CUresult operator()(Arguments... arguments) const {
    return function_ ? function_(arguments...) : CUDA_ERROR_NOT_FOUND;
  }

 private:
  CUresult (*const function_)(Arguments...);
};

inline CUdeviceptr DevicePointer(const void* pointer) {
  return reinterpret_cast<CUdeviceptr>(pointer);
}

}  // namespace simgpu
