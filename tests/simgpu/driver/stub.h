// A function of the interface that is not simulated. The log shows when a program calls it.
//
// Not for files that see cuda.h: a stub takes no arguments, whatever the header says.
#pragma once

namespace simgpu {

// CUDA_ERROR_NOT_SUPPORTED, or what a fault asks for.
int NotSimulated(const char* name);

}  // namespace simgpu

#define SIMGPU_STUB(name) \
  extern "C" int name() { return simgpu::NotSimulated(#name); }
