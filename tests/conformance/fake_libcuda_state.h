// What the parts of the fake libcuda share. Not seen by tests.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/mutex.h"
#include "allocator/driver/host_driver.h"
#include "tests/conformance/fake_libcuda.h"

// cuda.h only declares these.
struct CUctx_st {
  int device;
};

namespace thimble {
namespace fake_cuda {

inline constexpr int kMaxDevices = 8;

// An exported chunk: the caller holds the write end of a pipe as its file descriptor. While any
// copy of that end is open, in whatever process, the chunk has this reference (R8).
struct Exported {
  int read_end;
  unsigned long inode;
  ChunkHandle reference;
};

struct Device {
  CUctx_st context;
  int retained = 0;
  std::unique_ptr<HostDriver> memory;  // made with the first primary context
  std::set<ChunkHandle> shareable;
  std::vector<Exported> exports;
};

struct State {
  // The innermost rank: never held while HostDriver is called, and CudaStreams may hold its own.
  Mutex mutex{LockRank::kEventLog};
  FakeCudaControls controls;
  bool initialized = false;
  std::array<Device, kMaxDevices> devices;

  State();
};

State& GetState();

// Every exported function begins here: logs the line, then refuses if the driver is gone or was
// never initialised.
CUresult Enter(const std::string& line);

// The device of the context that is current on this thread; null if there is none. Stricter than
// CUDA, where cuMem* work without one: it proves that the driver never relies on its caller.
Device* CurrentDevice();

CUresult ToResult(const absl::Status& status);

// Destroys every event and releases every stream.
void ResetStreams();
int LiveEvents();

}  // namespace fake_cuda
}  // namespace thimble

#define FAKE_CUDA_ENTER(...)                                                         \
  do {                                                                               \
    const CUresult entered = ::thimble::fake_cuda::Enter(absl::StrCat(__VA_ARGS__)); \
    if (entered != CUDA_SUCCESS) return entered;                                     \
  } while (false)
