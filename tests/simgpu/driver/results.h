// Decides which small results a program reads back.
//
// Kernels do not run here, so a buffer that a kernel should have filled keeps its old bytes. A
// stale byte used as a boolean or an index makes a framework stop. So once anything was launched, a
// small read gives zeros unless exactly these bytes were written by exactly one copy.
#pragma once

#include <atomic>
#include <mutex>
#include <unordered_map>

#include "tests/simgpu/driver/options.h"

namespace simgpu {

class Results {
 public:
  Results(Bytes limit, int truth) : limit_(limit), truth_(truth) {}

  void Launched() { launched_.store(true, std::memory_order_relaxed); }
  // A copy wrote [begin, begin + bytes).
  void Wrote(const char* begin, Bytes bytes);
  bool WasWritten(const char* begin, Bytes bytes);
  // Bytes that go to the host. True if they are made up, and filled in; false: read them.
  bool MakeUp(const char* from, Bytes bytes, char* to);

 private:
  const Bytes limit_;
  const int truth_;
  std::atomic<bool> launched_{false};
  std::mutex mutex_;
  std::unordered_map<const char*, Bytes> written_;
};

}  // namespace simgpu
