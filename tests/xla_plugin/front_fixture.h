// Starts the front over the simulated driver with two GPUs of 1 GiB, once per process, as in JAX.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "allocator/thimble.h"
#include "gtest/gtest.h"
#include "xla_plugin/driver_front/cuda_abi.h"
#include "xla_plugin/driver_front/driver_front.h"
#include "xla_plugin/driver_front/real_driver.h"
#include "xla_plugin/driver_front/served.h"

namespace thimble::xla {

inline constexpr std::size_t kMiB = 1 << 20;

// THIMBLE_CONF of this process: each test program defines its own.
extern const char* const kFrontConf;

// Calls that break CUDA's rules, one per line; the simulator writes them down.
std::string IllegalCalls();

// The calls that reach the driver while `body` runs, on any thread, by their names.
std::vector<std::string> DriverCalls(const std::function<void()>& body);

// A function as programs find it: the front's own, or the driver's or the simulator's.
template <typename... Arguments>
CUresult Forwarded(const char* name, Arguments... arguments) {
  void* function = nullptr;
  int status = 0;
  const CUresult result = cuGetProcAddress_v2(name, &function, 12000, 0, &status);
  if (result != kSuccess) return result;
  return reinterpret_cast<CUresult (*)(Arguments...)>(function)(arguments...);
}

// Work on a stream that lasts until Release().
class Gate {
 public:
  explicit Gate(CUstream stream);
  ~Gate() { Release(); }
  void Release();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  bool passed_ = false;
};

class FrontTest : public testing::Test {
 protected:
  static constexpr int kDevices = 2;

  static void SetUpTestSuite();
  void SetUp() override;
  void TearDown() override;

  void UseDevice(int ordinal);
  CUmemoryPool PoolOf(int ordinal);
  CUstream NewStream();

  CUdeviceptr Allocate(std::size_t bytes, CUstream stream, int device = 0);
  void Free(CUdeviceptr pointer, CUstream stream);
  CUdeviceptr AllocatePlain(std::size_t bytes);

  thimble_stats StatsOf(int device);

 private:
  static CUcontext contexts_[kDevices];
  std::vector<CUstream> streams_;
};

}  // namespace thimble::xla
