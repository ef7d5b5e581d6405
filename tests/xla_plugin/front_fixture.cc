#include "tests/xla_plugin/front_fixture.h"

#include <stdlib.h>

#include <fstream>
#include <sstream>

namespace thimble::xla {
namespace {

constexpr const char* kDriver = "tests/simgpu/driver/libcuda.so.1";

std::string IllegalPath() { return testing::TempDir() + "/illegal.txt"; }

std::mutex seen_mutex;
std::vector<std::string> seen;  // names of calls

void See(const char* line) {
  const std::lock_guard lock(seen_mutex);
  const std::string text = line;
  seen.push_back(text.substr(0, text.find(' ')));
}

}  // namespace

std::string IllegalCalls() {
  std::ostringstream text;
  text << std::ifstream(IllegalPath()).rdbuf();
  return text.str();
}

std::vector<std::string> DriverCalls(const std::function<void()>& body) {
  void* function = nullptr;
  int status = 0;
  EXPECT_EQ(cuGetProcAddress_v2("simgpu_watch", &function, 12000, 0, &status), kSuccess);
  const auto watch = reinterpret_cast<void (*)(void (*)(const char*))>(function);
  watch(See);
  {
    const std::lock_guard lock(seen_mutex);
    seen.clear();
  }
  body();
  watch(nullptr);
  const std::lock_guard lock(seen_mutex);
  return seen;
}

// --- Gate ----------------------------------------------------------------------------------------

Gate::Gate(CUstream stream) {
  const auto wait = [](void* self) {
    Gate& gate = *static_cast<Gate*>(self);
    std::unique_lock lock(gate.mutex_);
    gate.changed_.wait(lock, [&] { return gate.open_; });
    gate.passed_ = true;
    gate.changed_.notify_all();
  };
  void (*const function)(void*) = wait;
  EXPECT_EQ(Forwarded("cuLaunchHostFunc", stream, function, static_cast<void*>(this)), kSuccess);
}

void Gate::Release() {
  std::unique_lock lock(mutex_);
  open_ = true;
  changed_.notify_all();
  changed_.wait(lock, [&] { return passed_; });
}

// --- FrontTest -----------------------------------------------------------------------------------

CUcontext FrontTest::contexts_[kDevices] = {};

void FrontTest::SetUpTestSuite() {
  if (contexts_[0] != nullptr) return;
  const std::string conf = "gpus:2,memory:1GiB,illegal:" + IllegalPath();
  setenv("SIMGPU_CONF", conf.c_str(), /*overwrite=*/1);
  ASSERT_STREQ(thimble_front_open(kDriver), nullptr);
  ASSERT_STREQ(thimble_front_start(kFrontConf, 0, 0), nullptr);
  for (int ordinal = 0; ordinal < kDevices; ++ordinal) {
    ASSERT_EQ(Real().cuDevicePrimaryCtxRetain(&contexts_[ordinal], ordinal), kSuccess);
  }
}

void FrontTest::SetUp() { UseDevice(0); }

void FrontTest::TearDown() {
  for (CUstream stream : streams_) EXPECT_EQ(cuStreamDestroy_v2(stream), kSuccess);
  for (int ordinal = 0; ordinal < kDevices; ++ordinal) {
    thimble_arena* const arena = thimble_front_arena(ordinal);
    if (arena == nullptr) continue;
    EXPECT_EQ(StatsOf(ordinal).live_blocks, 0u) << "the test left blocks on GPU " << ordinal;
    EXPECT_EQ(thimble_check(arena), THIMBLE_OK);
  }
  EXPECT_EQ(IllegalCalls(), "");
}

void FrontTest::UseDevice(int ordinal) {
  ASSERT_EQ(Forwarded("cuCtxSetCurrent", contexts_[ordinal]), kSuccess);
}

CUmemoryPool FrontTest::PoolOf(int ordinal) {
  CUmemoryPool pool = nullptr;
  EXPECT_EQ(Real().cuDeviceGetDefaultMemPool(&pool, ordinal), kSuccess);
  return pool;
}

CUstream FrontTest::NewStream() {
  CUstream stream = nullptr;
  EXPECT_EQ(Real().cuStreamCreate(&stream, kNonBlocking), kSuccess);
  streams_.push_back(stream);
  return stream;
}

CUdeviceptr FrontTest::Allocate(std::size_t bytes, CUstream stream, int device) {
  CUdeviceptr pointer = 0;
  EXPECT_EQ(cuMemAllocFromPoolAsync(&pointer, bytes, PoolOf(device), stream), kSuccess);
  return pointer;
}

void FrontTest::Free(CUdeviceptr pointer, CUstream stream) {
  EXPECT_EQ(cuMemFreeAsync(pointer, stream), kSuccess);
}

CUdeviceptr FrontTest::AllocatePlain(std::size_t bytes) {
  CUdeviceptr pointer = 0;
  EXPECT_EQ(cuMemAlloc_v2(&pointer, bytes), kSuccess);
  return pointer;
}

thimble_stats FrontTest::StatsOf(int device) {
  thimble_stats stats = {};
  stats.struct_size = sizeof(stats);
  EXPECT_EQ(thimble_get_stats(thimble_front_arena(device), &stats), THIMBLE_OK);
  return stats;
}

}  // namespace thimble::xla
