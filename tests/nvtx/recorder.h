// A tool that listens by NVTX and records what it hears, in place of compute-sanitizer, which needs
// a GPU. NVTX loads it from the path in NVTX_INJECTION64_PATH.
#pragma once

#include <cstddef>
#include <cstdint>

namespace thimble {

struct NvtxCall {
  enum Kind { kHeap, kHeapGone, kRegion, kRegionGone };
  Kind kind = kHeap;
  std::uint64_t address = 0;  // of a heap that is gone: its handle, which is its address here
  std::uint64_t bytes = 0;
  std::uint64_t heap = 0;  // of a region
};

}  // namespace thimble

// The number of calls, and each of them.
extern "C" std::size_t recorded_count();
extern "C" void recorded_call(std::size_t index, thimble::NvtxCall* call);
