// What the front serves in the driver's place, from which arena, and what it forwards.
#include <atomic>
#include <chrono>
#include <thread>

#include "gmock/gmock.h"
#include "tests/xla_plugin/front_fixture.h"

namespace thimble::xla {

const char* const kFrontConf = "";

namespace {

using ::testing::HasSubstr;

// This must be the first test, because arenas are made with their peers.
TEST_F(FrontTest, APeerIsGivenAccessBeforeTheFirstBlockAndRefusedAfterIt) {
  const CUmemAccessDesc peer = {{kLocationDevice, 1}, kAccessReadWrite};
  const CUmemAccessDesc itself = {{kLocationDevice, 0}, kAccessReadWrite};
  EXPECT_EQ(cuMemPoolSetAccess(PoolOf(0), &peer, 1), kSuccess);
  const CUstream stream = NewStream();
  const CUdeviceptr on_first = Allocate(kMiB, stream);
  EXPECT_THAT(thimble_options(thimble_front_arena(0)), HasSubstr("peers:1"));
  EXPECT_EQ(cuMemPoolSetAccess(PoolOf(0), &peer, 1), kSuccess) << "it has it already";
  EXPECT_EQ(cuMemPoolSetAccess(PoolOf(0), &itself, 1), kSuccess);
  Free(on_first, stream);

  UseDevice(1);
  const CUstream other = NewStream();
  const CUdeviceptr on_second = Allocate(kMiB, other, 1);
  testing::internal::CaptureStderr();
  EXPECT_EQ(cuMemPoolSetAccess(PoolOf(1), &itself, 1), kNotSupported);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("before the first allocation"));
  Free(on_second, other);
}

// --- Where blocks come from ----------------------------------------------------------------------

TEST_F(FrontTest, StreamOrderedBlocksAreTheArenas) {
  const CUstream stream = NewStream();
  const CUdeviceptr from_pool = Allocate(3 * kMiB, stream);
  CUdeviceptr pointer = 0;
  EXPECT_EQ(cuMemAllocAsync(&pointer, 5 * kMiB, stream), kSuccess);
  EXPECT_EQ(StatsOf(0).in_use, 8 * kMiB);
  Free(from_pool, stream);
  Free(pointer, stream);
  EXPECT_EQ(StatsOf(0).in_use, 0u);
}

TEST_F(FrontTest, PlainBlocksAreTheArenasOfTheCurrentDevice) {
  const CUdeviceptr on_first = AllocatePlain(3 * kMiB);
  UseDevice(1);
  const CUdeviceptr on_second = AllocatePlain(5 * kMiB);
  EXPECT_EQ(StatsOf(0).in_use, 3 * kMiB);
  EXPECT_EQ(StatsOf(1).in_use, 5 * kMiB);
  EXPECT_EQ(cuMemFree_v2(on_first), kSuccess) << "whichever device is current";
  EXPECT_EQ(cuMemFree_v2(on_second), kSuccess);
}

TEST_F(FrontTest, EitherKindCanBeFreedEitherWay) {
  const CUstream stream = NewStream();
  const CUdeviceptr ordered = Allocate(kMiB, stream);
  const CUdeviceptr plain = AllocatePlain(kMiB);
  EXPECT_EQ(cuMemFree_v2(ordered), kSuccess);
  Free(plain, stream);
}

TEST_F(FrontTest, MemoryOfTheDriverGoesBackToTheDriver) {
  CUdeviceptr managed = 0;
  EXPECT_EQ(Forwarded("cuMemAllocManaged", &managed, kMiB, 1u), kSuccess);
  EXPECT_EQ(cuMemFree_v2(managed), kSuccess);
  EXPECT_EQ(cuMemFree_v2(0), kSuccess);
}

TEST_F(FrontTest, ABlockIsFreedOnceAndByItsOwnAddress) {
  const CUstream stream = NewStream();
  for (const std::size_t bytes : {std::size_t{700}, 100 * kMiB / 1000, 3 * kMiB}) {
    const CUdeviceptr block = Allocate(bytes, stream);
    for (const CUdeviceptr inside : {block + 1, block + 256}) {
      EXPECT_EQ(cuMemFreeAsync(inside, stream), kInvalidValue);
      EXPECT_EQ(cuMemFree_v2(inside), kInvalidValue);
    }
    CUdeviceptr base = 0;
    std::size_t found = 0;
    EXPECT_EQ(cuMemGetAddressRange_v2(&base, &found, block), kSuccess) << "still held";
    EXPECT_EQ(found, bytes);
    Free(block, stream);
    EXPECT_EQ(cuMemFreeAsync(block, stream), kInvalidValue);
    EXPECT_EQ(cuMemFree_v2(block), kInvalidValue);
  }
}

TEST_F(FrontTest, AFreeThatFailsLeavesTheBlock) {
  const CUdeviceptr block = AllocatePlain(kMiB + 1);
  Forwarded("simgpu_fault", "cuCtxSynchronize@1");
  EXPECT_NE(cuMemFree_v2(block), kSuccess);
  Forwarded("simgpu_fault", "");
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  EXPECT_EQ(cuMemGetAddressRange_v2(&base, &bytes, block + kMiB), kSuccess);
  EXPECT_EQ(base, block);
  EXPECT_EQ(bytes, kMiB + 1);
  EXPECT_EQ(cuMemFree_v2(block), kSuccess);
}

TEST_F(FrontTest, NothingAndNowhereAreRefusedAsTheDriverDoes) {
  CUdeviceptr pointer = 0;
  EXPECT_EQ(cuMemAllocFromPoolAsync(&pointer, 0, PoolOf(0), nullptr), kInvalidValue);
  EXPECT_EQ(cuMemAlloc_v2(&pointer, 0), kInvalidValue);
}

// JAX frees from threads of its own, and not all of them have a context.
TEST_F(FrontTest, AThreadWithoutAContextCanAllocateAndFree) {
  const CUstream stream = NewStream();
  const CUdeviceptr small = Allocate(4, stream);
  const CUdeviceptr large = Allocate(4 * kMiB, stream);
  const CUdeviceptr ordered = Allocate(kMiB, stream);
  const CUdeviceptr plain = AllocatePlain(kMiB);
  const CUstream unseen = NewStream();
  std::thread([&] {
    Free(small, stream);
    Free(large, stream);
    Free(Allocate(kMiB, unseen), unseen);
    EXPECT_EQ(cuMemFree_v2(plain), kSuccess);
    EXPECT_EQ(cuMemFreeAsync_ptsz(ordered, nullptr), kSuccess);
  }).join();
}

// --- Order ---------------------------------------------------------------------------------------

TEST_F(FrontTest, AStreamGetsItsOwnMemoryBackAtOnce) {
  const CUstream stream = NewStream();
  const CUdeviceptr first = Allocate(4 * kMiB, stream);
  Gate busy(stream);
  Free(first, stream);
  EXPECT_EQ(Allocate(4 * kMiB, stream), first);
  Free(first, stream);
}

TEST_F(FrontTest, NobodyElseGetsItWhileTheStreamIsBusy) {
  const CUstream stream = NewStream();
  const CUstream other = NewStream();
  const CUdeviceptr first = Allocate(4 * kMiB, stream);
  Gate busy(stream);
  Free(first, stream);
  const CUdeviceptr ordered = Allocate(4 * kMiB, other);
  const CUdeviceptr plain = AllocatePlain(4 * kMiB);
  CUdeviceptr per_thread = 0;
  EXPECT_EQ(cuMemAllocAsync_ptsz(&per_thread, 4 * kMiB, nullptr), kSuccess);
  for (const CUdeviceptr block : {ordered, plain, per_thread}) EXPECT_NE(block, first);
  busy.Release();
  Free(ordered, other);
  EXPECT_EQ(cuMemFree_v2(plain), kSuccess);
  EXPECT_EQ(cuMemFreeAsync_ptsz(per_thread, nullptr), kSuccess);
}

TEST_F(FrontTest, APlainFreeWaitsForWhoeverMayUseTheBlock) {
  const CUstream stream = NewStream();
  const CUdeviceptr block = AllocatePlain(kMiB);
  Gate busy(stream);
  std::atomic<bool> released{false};
  std::thread gpu([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    released = true;
    busy.Release();
  });
  EXPECT_EQ(cuMemFree_v2(block), kSuccess);
  EXPECT_TRUE(released);
  gpu.join();
}

TEST_F(FrontTest, ADestroyedStreamIsNeverAskedAgain) {
  for (int round = 0; round < 20; ++round) {
    CUstream stream = nullptr;
    ASSERT_EQ(Real().cuStreamCreate(&stream, kNonBlocking), kSuccess);
    Free(Allocate(300 * kMiB, stream), stream);
    EXPECT_EQ(cuStreamDestroy_v2(stream), kSuccess);
    // More than is free without it: the arena must know that the stream has passed.
    const CUstream other = NewStream();
    Free(Allocate(900 * kMiB, other), other);
  }
}

// Not even if another stream needs what was freed there, because the query would be captured.
TEST_F(FrontTest, ACapturedStreamIsNotAsked) {
  const CUstream stream = NewStream();
  const CUstream other = NewStream();
  Free(Allocate(300 * kMiB, stream), stream);
  constexpr int kThreadLocal = 1;
  ASSERT_EQ(cuStreamBeginCapture_v2(stream, kThreadLocal), kSuccess);
  Free(Allocate(900 * kMiB, other), other);
  void* graph = nullptr;
  EXPECT_EQ(Forwarded("cuStreamEndCapture", stream, &graph), kSuccess);
  std::size_t nodes = 1;
  EXPECT_EQ(Forwarded("cuGraphGetNodes", graph, static_cast<void**>(nullptr), &nodes), kSuccess);
  EXPECT_EQ(nodes, 0u);
  EXPECT_EQ(Forwarded("cuGraphDestroy", graph), kSuccess);
}

TEST_F(FrontTest, WhatIsCapturedIsTheGraphs) {
  const CUstream stream = NewStream();
  const CUdeviceptr before = Allocate(kMiB, stream);
  ASSERT_EQ(Forwarded("cuStreamBeginCapture", stream, /*mode=*/1), kSuccess);
  CUdeviceptr pointer = 0;
  const CUresult result = cuMemAllocFromPoolAsync(&pointer, kMiB, PoolOf(0), stream);
  EXPECT_EQ(StatsOf(0).live_blocks, 1u) << "not from the arena";
  EXPECT_EQ(cuMemFreeAsync(before, stream), kInvalidValue)
      << "the graph cannot free what is not its";
  EXPECT_TRUE(result != kSuccess || cuMemFreeAsync(pointer, stream) == kSuccess);
  void* graph = nullptr;
  EXPECT_EQ(Forwarded("cuStreamEndCapture", stream, &graph), kSuccess);
  EXPECT_EQ(Forwarded("cuGraphDestroy", graph), kSuccess);
  Free(before, stream);
}

}  // namespace
}  // namespace thimble::xla
