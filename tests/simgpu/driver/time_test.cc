// What programs notice of time: nothing is over before its end, and events say when it was.
//
// Waits are only compared with what they must last at least, which holds on any machine. The GPU
// here fills 1 MB per millisecond.
#include <array>
#include <atomic>
#include <chrono>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "tests/simgpu/driver/machine.h"

namespace simgpu {
namespace {

using testing::IsEmpty;
using SteadyClock = std::chrono::steady_clock;

constexpr char kProfile[] = R"(
fp64_tflops 1
fp32_tflops 1
tf32_tflops 1
half_tflops 1
byte_tflops 1
simd_efficiency 1
tensor_efficiency 1
memory_gbps 1  # a megabyte per millisecond
memory_efficiency 1
bus_in_gbps 0.01
bus_in_us 0
bus_out_gbps 0.01
bus_out_us 0
pageable_gbps 0.005
nvlink_gbps 0
launch_us 0
reserve_us 0
create_us 20000
map_us 0
set_access_us 10000
unmap_us 0
alloc_us 0
alloc_us_per_mib 0
free_us 0
)";
constexpr std::size_t kBytes = 50'000'000;  // 50 ms: nobody needs as long to submit some work
constexpr float kMilliseconds = 50;
constexpr std::size_t kCopied = kBytes / 100;  // in the same time: the host copies for real

class Timed : public Machine {
 protected:
  void SetUp() override {
    const char* const folder = std::getenv("TEST_TMPDIR");
    const std::string path = std::string(folder == nullptr ? "/tmp" : folder) + "/profile";
    std::ofstream(path) << kProfile;
    Start("gpus:2,memory:1GiB,clock:" + path);
    stream_ = NewStream();
    other_ = NewStream();
    for (CUevent& event : events_) ASSERT_EQ(cuEventCreate(&event, 0), CUDA_SUCCESS);
    block_ = Allocate(kBytes);
    second_ = Allocate(kBytes);
    ASSERT_EQ(cuMemHostAlloc(&pinned_, kBytes, 0), CUDA_SUCCESS);
    began_ = SteadyClock::now();
  }
  void TearDown() override {
    EXPECT_THAT(IllegalCalls(), IsEmpty());
    cuCtxSynchronize();
    cuMemFreeHost(pinned_);
    Machine::TearDown();
  }

  static CUstream NewStream() {
    CUstream stream = nullptr;
    EXPECT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    return stream;
  }

  void FillOn(CUstream stream, std::size_t bytes = kBytes) {
    ASSERT_EQ(cuMemsetD8Async(block_, 0, bytes, stream), CUDA_SUCCESS);
  }
  void Record(int event, CUstream stream) {
    ASSERT_EQ(cuEventRecord(events_[event], stream), CUDA_SUCCESS);
  }
  float Between(int first, int last) {
    EXPECT_EQ(cuEventSynchronize(events_[first]), CUDA_SUCCESS);
    EXPECT_EQ(cuEventSynchronize(events_[last]), CUDA_SUCCESS);
    float milliseconds = -1;
    EXPECT_EQ(cuEventElapsedTime(&milliseconds, events_[first], events_[last]), CUDA_SUCCESS);
    return milliseconds;
  }
  bool HasTaken(double milliseconds) const {
    return SteadyClock::now() - began_ >=
           std::chrono::duration<double, std::milli>(milliseconds - 0.001);
  }

  CUstream stream_ = nullptr;
  CUstream other_ = nullptr;
  std::array<CUevent, 4> events_ = {};
  CUdeviceptr block_ = 0;
  CUdeviceptr second_ = 0;
  void* pinned_ = nullptr;
  SteadyClock::time_point began_;
};

TEST_F(Timed, WorkEndsAtItsEndAndNotBefore) {
  FillOn(stream_);
  Record(0, stream_);
  EXPECT_EQ(cuStreamQuery(stream_), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuEventQuery(events_[0]), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuStreamQuery(other_), CUDA_SUCCESS);
  float milliseconds = 0;
  EXPECT_EQ(cuEventElapsedTime(&milliseconds, events_[0], events_[0]), CUDA_ERROR_NOT_READY);
  ASSERT_EQ(cuEventSynchronize(events_[0]), CUDA_SUCCESS);
  EXPECT_TRUE(HasTaken(kMilliseconds));
  EXPECT_EQ(cuStreamQuery(stream_), CUDA_SUCCESS);
  EXPECT_EQ(cuEventQuery(events_[0]), CUDA_SUCCESS);
}

TEST_F(Timed, EventsSayHowLongWorkTook) {
  FillOn(stream_);
  Record(0, stream_);
  FillOn(stream_, kBytes / 2);
  Record(1, stream_);
  ASSERT_EQ(cuMemcpyDtoDAsync(second_, block_, kBytes / 2, stream_), CUDA_SUCCESS);
  Record(2, stream_);
  ASSERT_EQ(cuMemcpyHtoDAsync(second_, pinned_, kCopied / 2, stream_), CUDA_SUCCESS);
  Record(3, stream_);
  EXPECT_FLOAT_EQ(Between(0, 1), kMilliseconds / 2);
  EXPECT_FLOAT_EQ(Between(1, 2), kMilliseconds) << "read and written";
  EXPECT_FLOAT_EQ(Between(2, 3), kMilliseconds / 2);
}

TEST_F(Timed, StreamsShareTheirDeviceAndCopiesRunBeside) {
  FillOn(stream_);
  Record(0, stream_);
  FillOn(other_);
  Record(1, other_);
  const CUstream third = NewStream();
  ASSERT_EQ(cuMemcpyHtoDAsync(second_, pinned_, kCopied, third), CUDA_SUCCESS);
  Record(2, third);
  EXPECT_FLOAT_EQ(Between(0, 1), kMilliseconds);
  EXPECT_LT(Between(2, 1), kMilliseconds + 1) << "it did not wait for the fills";
}

TEST_F(Timed, AStreamWaitsForTheEventOfAnother) {
  FillOn(stream_);
  Record(0, stream_);
  ASSERT_EQ(cuStreamWaitEvent(other_, events_[0], 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemcpyDtoHAsync(pinned_, second_, kCopied / 5, other_), CUDA_SUCCESS);
  Record(1, other_);
  EXPECT_EQ(cuStreamQuery(other_), CUDA_ERROR_NOT_READY);
  EXPECT_FLOAT_EQ(Between(0, 1), kMilliseconds / 5);
}

TEST_F(Timed, AHostFunctionRunsWhenTheWorkBeforeItIsOver) {
  struct Seen {
    std::atomic<bool> ran{false};
    SteadyClock::time_point when;
  } seen;
  FillOn(stream_);
  ASSERT_EQ(cuLaunchHostFunc(
                stream_,
                [](void* data) {
                  static_cast<Seen*>(data)->when = SteadyClock::now();
                  static_cast<Seen*>(data)->ran = true;
                },
                &seen),
            CUDA_SUCCESS);
  FillOn(stream_, kBytes / 5);
  EXPECT_FALSE(seen.ran);
  ASSERT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
  EXPECT_TRUE(seen.ran);
  EXPECT_GE(seen.when - began_, std::chrono::milliseconds(50));
  EXPECT_TRUE(HasTaken(kMilliseconds * 1.2));
}

TEST_F(Timed, BlockingCallsLastUntilTheEnd) {
  ASSERT_EQ(cuMemsetD8(block_, 0, kBytes / 5), CUDA_SUCCESS);
  EXPECT_TRUE(HasTaken(10));
  std::vector<char> pageable(2 * kCopied / 10);
  ASSERT_EQ(cuMemcpyDtoHAsync(pageable.data(), block_, pageable.size(), stream_), CUDA_SUCCESS);
  EXPECT_TRUE(HasTaken(30)) << "at half the speed of pinned memory";
  ASSERT_EQ(cuMemcpyHtoDAsync(block_, pageable.data(), pageable.size(), stream_), CUDA_SUCCESS);
  EXPECT_TRUE(HasTaken(50));
  FillOn(stream_, kBytes / 5);
  ASSERT_EQ(cuMemFree(second_), CUDA_SUCCESS);
  EXPECT_TRUE(HasTaken(60)) << "a free waits for the device";
  FillOn(stream_, kBytes / 5);
  ASSERT_EQ(cuStreamDestroy(stream_), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_TRUE(HasTaken(70)) << "for streams that are gone, too";
}

TEST_F(Timed, EveryNodeOfAGraphTakesItsTime) {
  CUgraph graph = nullptr;
  CUgraph child = nullptr;
  CUgraphNode node = nullptr;
  CUDA_MEMSET_NODE_PARAMS fill = {block_, 0, 0, 1, kBytes / 5, 1};
  ASSERT_EQ(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphCreate(&child, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphAddMemsetNode(&node, child, nullptr, 0, &fill, context_), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphAddMemsetNode(&node, graph, nullptr, 0, &fill, context_), CUDA_SUCCESS);
  CUgraphNode last = nullptr;
  ASSERT_EQ(cuGraphAddChildGraphNode(&last, graph, &node, 1, child), CUDA_SUCCESS);
  CUgraphExec executable = nullptr;
  ASSERT_EQ(cuGraphInstantiate(&executable, graph, 0), CUDA_SUCCESS);
  FillOn(stream_);
  Record(0, stream_);
  ASSERT_EQ(cuGraphLaunch(executable, stream_), CUDA_SUCCESS);
  Record(1, stream_);
  ASSERT_EQ(cuGraphNodeSetEnabled(executable, node, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphLaunch(executable, stream_), CUDA_SUCCESS);
  Record(2, stream_);
  EXPECT_FLOAT_EQ(Between(0, 1), kMilliseconds * 2 / 5);
  EXPECT_FLOAT_EQ(Between(1, 2), kMilliseconds / 5);
}

TEST_F(Timed, DriverCallsTakeTheirPrice) {
  const CUmemGenericAllocationHandle handles[] = {Create(kGranule), Create(kGranule)};
  EXPECT_TRUE(HasTaken(40));
  const CUdeviceptr base = Reserve(2 * kGranule);
  for (int i : {0, 1}) {
    ASSERT_EQ(cuMemMap(base + i * kGranule, kGranule, 0, handles[i], 0), CUDA_SUCCESS);
  }
  ASSERT_EQ(Open(base, 2 * kGranule), CUDA_SUCCESS);
  EXPECT_TRUE(HasTaken(60)) << "for each mapping";
}

TEST_F(Timed, TheHostIsOnlySoFarAhead) {
  FillOn(stream_);
  for (int i = 0; i < 1023; ++i) FillOn(stream_, 1);
  EXPECT_FALSE(HasTaken(kMilliseconds)) << "as much as fits into the queue";
  FillOn(stream_, 1);
  EXPECT_TRUE(HasTaken(kMilliseconds)) << "until the first of them is over";
}

}  // namespace
}  // namespace simgpu
