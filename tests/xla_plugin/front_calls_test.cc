// Which driver calls the front makes for an allocation and a free, what it remembers instead, and
// when it asks again.
#include <thread>

#include "gmock/gmock.h"
#include "tests/xla_plugin/front_fixture.h"

namespace thimble::xla {

const char* const kFrontConf = "";

namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

const CUstream kLegacy = reinterpret_cast<CUstream>(kLegacyStream);
const CUstream kPerThread = reinterpret_cast<CUstream>(kPerThreadStream);

class FrontCalls : public FrontTest {
 protected:
  CUdeviceptr AllocateAsync(CUstream stream) {
    CUdeviceptr pointer = 0;
    EXPECT_EQ(cuMemAllocAsync(&pointer, kMiB, stream), kSuccess);
    return pointer;
  }
  // Lets the arena take memory and the front see the stream.
  void Use(CUstream stream) { Free(AllocateAsync(stream), stream); }

  std::vector<std::string> CallsToAllocate(CUstream stream) {
    CUdeviceptr pointer = 0;
    const auto calls = DriverCalls([&] { pointer = AllocateAsync(stream); });
    Free(pointer, stream);
    return calls;
  }
  std::vector<std::string> CallsToFree(CUstream stream) {
    const CUdeviceptr pointer = AllocateAsync(stream);
    return DriverCalls([&] { Free(pointer, stream); });
  }

  CUmemoryPool NewPool() {
    struct {  // CUmemPoolProps
      int type = 1;
      int handle_types = 0;
      CUmemLocation location = {kLocationDevice, 0};
      void* attributes = nullptr;
      std::size_t max_size = 0;
      unsigned short usage = 0;
      unsigned char reserved[54] = {};
    } properties;
    CUmemoryPool pool = nullptr;
    EXPECT_EQ(Forwarded("cuMemPoolCreate", &pool, static_cast<const void*>(&properties)), kSuccess);
    return pool;
  }

  // Whether cuMemAllocAsync is served by the arena.
  bool IsServed(CUstream stream) {
    const std::uint64_t before = StatsOf(0).live_blocks;
    const CUdeviceptr pointer = AllocateAsync(stream);
    const bool is_served = StatsOf(0).live_blocks > before;
    Free(pointer, stream);
    return is_served;
  }
};

// --- How much is asked ---------------------------------------------------------------------------

TEST_F(FrontCalls, WhetherItIsCapturedIsAllThatIsAskedAboutAStream) {
  const CUstream stream = NewStream();
  Use(stream);
  EXPECT_THAT(CallsToAllocate(stream), ElementsAre("cuStreamIsCapturing"));
  EXPECT_THAT(CallsToFree(stream), ElementsAre("cuStreamIsCapturing"));
  CUdeviceptr pointer = 0;
  const CUmemoryPool pool = PoolOf(0);
  EXPECT_THAT(DriverCalls([&] { cuMemAllocFromPoolAsync(&pointer, kMiB, pool, stream); }),
              ElementsAre("cuStreamIsCapturing"));
  Free(pointer, stream);
}

TEST_F(FrontCalls, ManyStreamsAreKnownAtOnceAndOnEveryThread) {
  std::vector<CUstream> streams;
  for (int i = 0; i < 100; ++i) {
    streams.push_back(NewStream());
    Use(streams.back());
  }
  const auto expect_known = [&] {
    for (const CUstream stream : streams) {
      EXPECT_THAT(CallsToAllocate(stream), Not(Contains("cuStreamGetCtx")));
    }
  };
  expect_known();
  std::thread([&] {
    UseDevice(1);
    expect_known();
  }).join();
}

TEST_F(FrontCalls, OfTheLegacyStreamOnlyTheContextIsAsked) {
  for (const CUstream stream : {CUstream{nullptr}, kLegacy}) {
    Use(stream);
    EXPECT_THAT(CallsToAllocate(stream), ElementsAre("cuCtxGetCurrent"));
    EXPECT_THAT(CallsToFree(stream), ElementsAre("cuCtxGetCurrent"));
  }
}

TEST_F(FrontCalls, OfThePerThreadStreamTheContextAndWhetherItIsCaptured) {
  Use(kPerThread);
  EXPECT_THAT(CallsToAllocate(kPerThread), ElementsAre("cuStreamIsCapturing", "cuCtxGetCurrent"));
  CUdeviceptr pointer = 0;
  const CUmemoryPool pool = PoolOf(0);
  EXPECT_THAT(DriverCalls([&] { cuMemAllocFromPoolAsync(&pointer, kMiB, pool, kPerThread); }),
              ElementsAre("cuStreamIsCapturing"));
  Free(pointer, kPerThread);
}

TEST_F(FrontCalls, OfAPlainBlockTheDevice) {
  EXPECT_EQ(cuMemFree_v2(AllocatePlain(kMiB)), kSuccess);
  CUdeviceptr pointer = 0;
  EXPECT_THAT(DriverCalls([&] { pointer = AllocatePlain(kMiB); }), ElementsAre("cuCtxGetDevice"));
  EXPECT_EQ(cuMemFree_v2(pointer), kSuccess);
}

// --- Default streams -----------------------------------------------------------------------------

TEST_F(FrontCalls, ADefaultStreamIsThatOfTheCurrentDevice) {
  for (const int device : {1, 0}) {
    UseDevice(device);
    Use(nullptr);
  }
  for (const CUstream stream : {CUstream{nullptr}, kLegacy, kPerThread}) {
    for (const int device : {0, 1, 0, 1}) {
      UseDevice(device);
      Use(stream);
      const std::uint64_t before[] = {StatsOf(0).in_use, StatsOf(1).in_use};
      const CUdeviceptr pointer = AllocateAsync(stream);
      EXPECT_EQ(StatsOf(device).in_use, before[device] + kMiB);
      EXPECT_EQ(StatsOf(1 - device).in_use, before[1 - device]);
      Free(pointer, stream);
    }
    UseDevice(0);
  }
}

TEST_F(FrontCalls, AnotherContextOfTheDeviceIsServedToo) {
  Use(nullptr);
  CUcontext context = nullptr;
  ASSERT_EQ(Forwarded("cuCtxCreate_v2", &context, 0u, /*device=*/0), kSuccess);
  Use(nullptr);
  EXPECT_THAT(CallsToAllocate(nullptr), ElementsAre("cuCtxGetCurrent"));
  EXPECT_THAT(CallsToFree(nullptr), Contains("cuStreamSynchronize"))
      << "the arena cannot ask about this one";
  ASSERT_EQ(Forwarded("cuCtxDestroy", context), kSuccess);
  UseDevice(0);
  EXPECT_THAT(CallsToFree(nullptr), ElementsAre("cuCtxGetCurrent"));
}

// --- What ends -----------------------------------------------------------------------------------

// The driver refuses to end these once, so that there is something of the same handle afterwards.

TEST_F(FrontCalls, ADestroyedStreamIsForgotten) {
  const CUstream stream = NewStream();
  Use(stream);
  std::thread([&] { Use(stream); }).join();
  Forwarded("simgpu_fault", "cuStreamDestroy@1");
  EXPECT_NE(cuStreamDestroy_v2(stream), kSuccess);
  Forwarded("simgpu_fault", "");
  EXPECT_THAT(CallsToAllocate(stream), Contains("cuStreamGetCtx"));
  EXPECT_THAT(CallsToAllocate(stream), ElementsAre("cuStreamIsCapturing"));
}

TEST_F(FrontCalls, StreamsAreForgottenWithTheirContext) {
  const CUstream stream = NewStream();
  UseDevice(1);
  const CUstream other = NewStream();
  Use(other);
  UseDevice(0);
  Use(stream);
  Forwarded("simgpu_fault", "cuDevicePrimaryCtxReset@1");
  EXPECT_NE(Forwarded("cuDevicePrimaryCtxReset", /*device=*/0), kSuccess);
  Forwarded("simgpu_fault", "");
  EXPECT_THAT(CallsToAllocate(stream), Contains("cuStreamGetCtx"));
  EXPECT_THAT(CallsToAllocate(other), ElementsAre("cuStreamIsCapturing"))
      << "another device's is not";
}

TEST_F(FrontCalls, AContextIsForgottenWhenItEnds) {
  const struct {
    const char* name;
    std::function<CUresult(CUcontext)> call;
  } ends[] = {
      {"cuCtxDestroy", cuCtxDestroy_v2},
      {"cuCtxDetach", cuCtxDetach},
      {"cuGreenCtxDestroy", [](CUcontext) { return cuGreenCtxDestroy(nullptr); }},
  };
  for (const auto& end : ends) {
    CUcontext context = nullptr;
    ASSERT_EQ(Forwarded("cuCtxCreate_v2", &context, 0u, /*device=*/0), kSuccess);
    Use(nullptr);
    EXPECT_THAT(CallsToAllocate(nullptr), ElementsAre("cuCtxGetCurrent"));
    const std::string fault = std::string(end.name) + "@1";
    Forwarded("simgpu_fault", fault.c_str());
    EXPECT_NE(end.call(context), kSuccess);
    Forwarded("simgpu_fault", "");
    EXPECT_THAT(CallsToAllocate(nullptr), Contains("cuCtxGetDevice")) << end.name;
    ASSERT_EQ(Forwarded("cuCtxDestroy", context), kSuccess);
    UseDevice(0);
  }
}

// --- Pools and captures --------------------------------------------------------------------------

TEST_F(FrontCalls, APoolInTheDefaultOnesPlaceServesUntilItIsGone) {
  const CUstream stream = NewStream();
  Use(stream);
  EXPECT_TRUE(IsServed(stream));
  const CUmemoryPool pool = NewPool();
  ASSERT_EQ(Forwarded("cuDeviceSetMemPool", /*device=*/0, pool), kSuccess);
  EXPECT_FALSE(IsServed(stream));
  const CUdeviceptr from_default = Allocate(kMiB, stream);
  EXPECT_EQ(StatsOf(0).live_blocks, 1u) << "who names the default pool gets the arena";
  Free(from_default, stream);
  ASSERT_EQ(Forwarded("cuDeviceSetMemPool", /*device=*/0, PoolOf(0)), kSuccess);
  EXPECT_TRUE(IsServed(stream));
  ASSERT_EQ(Forwarded("cuDeviceSetMemPool", /*device=*/0, pool), kSuccess);
  EXPECT_FALSE(IsServed(stream));
  ASSERT_EQ(Forwarded("cuMemPoolDestroy", pool), kSuccess);
  EXPECT_TRUE(IsServed(stream));
}

TEST_F(FrontCalls, AStreamThatIsKnownCanBeCapturedAllTheSame) {
  const CUstream stream = NewStream();
  for (int round = 0; round < 3; ++round) {
    Use(stream);
    EXPECT_TRUE(IsServed(stream));
    ASSERT_EQ(Forwarded("cuStreamBeginCapture", stream, /*mode=*/1), kSuccess);
    CUdeviceptr pointer = 0;
    const CUresult result = cuMemAllocAsync(&pointer, kMiB, stream);
    EXPECT_EQ(StatsOf(0).live_blocks, 0u) << "it is the graph's";
    EXPECT_TRUE(result != kSuccess || cuMemFreeAsync(pointer, stream) == kSuccess);
    void* graph = nullptr;
    EXPECT_EQ(Forwarded("cuStreamEndCapture", stream, &graph), kSuccess);
    EXPECT_EQ(Forwarded("cuGraphDestroy", graph), kSuccess);
  }
}

}  // namespace
}  // namespace thimble::xla
