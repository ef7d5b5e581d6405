// Shared by the files of libcudart.so.12: CUDA 12's types, which differ in CUDA 13's headers.
#pragma once

#include <cstddef>

#include "tests/simgpu/libraries/driver.h"

namespace simgpu {

// The runtime's error numbers are the driver's, where both have the error.
using RuntimeError = int;

inline constexpr int kRuntimeVersion = 12090;

struct Dim3 {
  unsigned x, y, z;
};

// Makes the primary context of the thread's device current, as every runtime call does.
CUresult EnterDevice();

// Every runtime call ends here, which records the result for cudaGetLastError().
RuntimeError Finish(CUresult result);

// The driver's function for a kernel of the program, in the current context; null if unknown.
CUfunction FindKernel(const void* host_function);

}  // namespace simgpu
