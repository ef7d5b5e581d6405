// What the front's driver functions return about memory, and how the front refuses requests.
#include <map>
#include <thread>

#include "gmock/gmock.h"
#include "tests/xla_plugin/front_fixture.h"

namespace thimble::xla {

const char* const kFrontConf = "";

namespace {

using ::testing::HasSubstr;

int Count(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

TEST_F(FrontTest, WhatTheArenaKeepsIsFree) {
  std::size_t before = 0;
  std::size_t total = 0;
  ASSERT_EQ(cuMemGetInfo_v2(&before, &total), kSuccess);
  EXPECT_EQ(total, 1024 * kMiB);
  const CUstream stream = NewStream();
  const CUdeviceptr block = Allocate(100 * kMiB, stream);
  std::size_t during = 0;
  ASSERT_EQ(cuMemGetInfo_v2(&during, &total), kSuccess);
  EXPECT_EQ(during, before - 100 * kMiB);
  Free(block, stream);
  std::size_t after = 0;
  ASSERT_EQ(cuMemGetInfo_v2(&after, &total), kSuccess);
  EXPECT_EQ(after, before);
  EXPECT_GE(StatsOf(0).reserved, 100 * kMiB);
}

TEST_F(FrontTest, ThePoolsAttributesAreTheArenasFigures) {
  const CUstream stream = NewStream();
  const CUdeviceptr block = Allocate(10 * kMiB, stream);
  const auto get = [&](int attribute) {
    std::uint64_t value = 0;
    EXPECT_EQ(cuMemPoolGetAttribute(PoolOf(0), attribute, &value), kSuccess);
    return value;
  };
  EXPECT_EQ(get(kUsedCurrent), 10 * kMiB);
  EXPECT_EQ(get(kReservedCurrent), StatsOf(0).reserved);
  Free(block, stream);
  EXPECT_EQ(get(kUsedCurrent), 0u);
  EXPECT_GE(get(kUsedHigh), 10 * kMiB);
  std::uint64_t zero = 0;
  EXPECT_EQ(cuMemPoolSetAttribute(PoolOf(0), kUsedHigh, &zero), kSuccess);
  EXPECT_EQ(get(kUsedHigh), 0u);
  EXPECT_EQ(cuMemPoolTrimTo(PoolOf(0), 0), kSuccess);
  EXPECT_EQ(get(kReservedCurrent), 0u);
  std::uint64_t threshold = 12345678;
  EXPECT_EQ(cuMemPoolSetAttribute(PoolOf(0), kReleaseThreshold, &threshold), kSuccess);
  EXPECT_EQ(get(kReleaseThreshold), 0u) << "XLA would take as much at once";
}

TEST_F(FrontTest, APoolThatSomebodyMakesIsTheDrivers) {
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
  ASSERT_EQ(Forwarded("cuMemPoolCreate", &pool, static_cast<const void*>(&properties)), kSuccess);
  const CUstream stream = NewStream();
  const std::uint64_t in_use = thimble_front_arena(0) == nullptr ? 0 : StatsOf(0).in_use;
  CUdeviceptr pointer = 0;
  EXPECT_EQ(cuMemAllocFromPoolAsync(&pointer, kMiB, pool, stream), kSuccess);
  EXPECT_EQ(thimble_front_arena(0) == nullptr ? 0 : StatsOf(0).in_use, in_use);
  Free(pointer, stream);
  EXPECT_EQ(Forwarded("cuMemPoolDestroy", pool), kSuccess);
}

TEST_F(FrontTest, ABlockIsWholeToWhoeverAsksForItsRange) {
  const CUstream stream = NewStream();
  const CUdeviceptr block = Allocate(5 * kMiB + 1, stream);
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  EXPECT_EQ(cuMemGetAddressRange_v2(&base, &bytes, block + 3 * kMiB), kSuccess);
  EXPECT_EQ(base, block);
  EXPECT_EQ(bytes, 5 * kMiB + 1);
  CUmemoryPool pool = nullptr;
  EXPECT_EQ(cuPointerGetAttribute(&pool, kPoolHandle, block), kSuccess);
  EXPECT_EQ(pool, PoolOf(0));
  constexpr int kDeviceOrdinal = 9;
  int attributes[] = {kRangeStart, kDeviceOrdinal, kRangeSize, kIpcCapable};
  int device = -1;
  int can_share = -1;
  base = bytes = 0;
  void* values[] = {&base, &device, &bytes, &can_share};
  EXPECT_EQ(cuPointerGetAttributes(4, attributes, values, block + 1), kSuccess);
  EXPECT_EQ(base, block);
  EXPECT_EQ(device, 0) << "the driver's answer";
  EXPECT_EQ(bytes, 5 * kMiB + 1);
  EXPECT_EQ(can_share, 0);
  Free(block, stream);
}

TEST_F(FrontTest, AStitchedBlockIsWholeToo) {
  constexpr int kPieces = 500;
  const CUstream stream = NewStream();
  std::vector<CUdeviceptr> pieces;
  for (int i = 0; i < kPieces; ++i) pieces.push_back(Allocate(2 * kMiB, stream));
  for (int i = 0; i < kPieces; i += 2) Free(pieces[static_cast<std::size_t>(i)], stream);
  const std::size_t odd = 300;
  for (const std::size_t asked : {64 * kMiB + odd, 60 * kMiB + 1, 64 * kMiB, 62 * kMiB + odd}) {
    const std::uint64_t before = StatsOf(0).stitches;
    const CUdeviceptr block = Allocate(asked, stream);
    EXPECT_GT(StatsOf(0).stitches, before);
    for (const std::size_t inside : {std::size_t{0}, std::size_t{1}, 33 * kMiB, asked - 1}) {
      CUdeviceptr base = 0;
      std::size_t bytes = 0;
      EXPECT_EQ(cuMemGetAddressRange_v2(&base, &bytes, block + inside), kSuccess);
      EXPECT_EQ(base, block);
      EXPECT_EQ(bytes, asked);
    }
    Free(block, stream);
  }
  for (int i = 1; i < kPieces; i += 2) Free(pieces[static_cast<std::size_t>(i)], stream);
}

TEST_F(FrontTest, NoOtherProcessMapsABlock) {
  const CUdeviceptr block = AllocatePlain(kMiB);
  CUipcMemHandle handle;
  testing::internal::CaptureStderr();
  EXPECT_EQ(cuIpcGetMemHandle(&handle, block), kNotSupported);
  EXPECT_EQ(cuIpcGetMemHandle(&handle, block), kNotSupported);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(Count(said, "cuIpcGetMemHandle"), 1) << said;
  EXPECT_THAT(said, HasSubstr("cumemalloc:driver"));
  EXPECT_EQ(cuMemFree_v2(block), kSuccess);
}

TEST_F(FrontTest, OutOfMemoryIsExplainedOncePerFailure) {
  const CUstream stream = NewStream();
  const CUdeviceptr held = Allocate(600 * kMiB, stream);
  CUdeviceptr pointer = 0;
  testing::internal::CaptureStderr();
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(cuMemAllocFromPoolAsync(&pointer, 500 * kMiB, PoolOf(0), stream), kOutOfMemory);
  }
  std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(Count(said, "requested  500.00 MiB"), 1) << said;
  EXPECT_THAT(said, HasSubstr("in use     600.00 MiB"));
  Free(held, stream);
  testing::internal::CaptureStderr();
  EXPECT_EQ(cuMemAlloc_v2(&pointer, 5000 * kMiB), kOutOfMemory);
  said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(Count(said, "requested"), 1) << said;
  EXPECT_EQ(pointer, 0u);
}

std::string TakeFailure(std::size_t room = 4096) {
  std::string report(room, '?');
  const std::size_t length = thimble_front_take_failure(report.data(), room);
  EXPECT_EQ(report[length], 0);
  return report.substr(0, length);
}

TEST_F(FrontTest, AReportIsThereForWhoeverRaisesAnExceptionAndOnce) {
  TakeFailure();
  CUdeviceptr pointer = 0;
  testing::internal::CaptureStderr();
  EXPECT_EQ(cuMemAlloc_v2(&pointer, 5000 * kMiB), kOutOfMemory);
  UseDevice(1);
  EXPECT_EQ(cuMemAlloc_v2(&pointer, 5000 * kMiB), kOutOfMemory);
  const std::string said = testing::internal::GetCapturedStderr();
  const std::string report = TakeFailure();
  EXPECT_THAT(report, HasSubstr("GPU 1: out of memory (true)"));
  EXPECT_THAT(said, HasSubstr("thimble: " + report)) << "the same as on stderr";
  EXPECT_EQ(TakeFailure(), "");

  testing::internal::CaptureStderr();
  EXPECT_EQ(cuMemAlloc_v2(&pointer, 5000 * kMiB), kOutOfMemory);
  testing::internal::GetCapturedStderr();
  EXPECT_EQ(TakeFailure(/*room=*/7), "GPU 1:") << "cut off";
  EXPECT_EQ(thimble_front_take_failure(nullptr, 100), 0u);
}

TEST_F(FrontTest, ARequestThatFitsAfterAllHasNoReport) {
  TakeFailure();
  const CUstream stream = NewStream();
  const CUdeviceptr held = Allocate(600 * kMiB, stream);
  CUdeviceptr pointer = 0;
  testing::internal::CaptureStderr();
  EXPECT_EQ(cuMemAllocFromPoolAsync(&pointer, 500 * kMiB, PoolOf(0), stream), kOutOfMemory);
  testing::internal::GetCapturedStderr();
  Free(Allocate(kMiB, stream), stream);  // a smaller one says nothing about it
  Free(held, stream);
  EXPECT_NE(TakeFailure(), "");

  const CUdeviceptr again = Allocate(600 * kMiB, stream);
  testing::internal::CaptureStderr();
  EXPECT_EQ(cuMemAllocFromPoolAsync(&pointer, 500 * kMiB, PoolOf(0), stream), kOutOfMemory);
  testing::internal::GetCapturedStderr();
  Free(again, stream);
  Free(Allocate(500 * kMiB, stream), stream);
  EXPECT_EQ(TakeFailure(), "");
}

TEST_F(FrontTest, LookedUpFunctionsAreTheFronts) {
  const std::map<std::string, void*> served = {
      {"cuMemAlloc", reinterpret_cast<void*>(cuMemAlloc_v2)},
      {"cuMemFreeAsync", reinterpret_cast<void*>(cuMemFreeAsync)},
      {"cuStreamDestroy", reinterpret_cast<void*>(cuStreamDestroy_v2)},
      {"cuGetProcAddress", reinterpret_cast<void*>(cuGetProcAddress_v2)},
  };
  for (const auto& [symbol, function] : served) {
    void* found = nullptr;
    int status = -1;
    EXPECT_EQ(cuGetProcAddress_v2(symbol.c_str(), &found, 12040, 0, &status), kSuccess) << symbol;
    EXPECT_EQ(found, function) << symbol;
  }
  void* found = nullptr;
  EXPECT_EQ(cuGetProcAddress("cuMemFreeAsync", &found, 12000, kPerThreadDefaultStream), kSuccess);
  EXPECT_EQ(found, reinterpret_cast<void*>(cuMemFreeAsync_ptsz));
  EXPECT_EQ(cuGetProcAddress("cuGetProcAddress", &found, 11030, 0), kSuccess);
  EXPECT_EQ(found, reinterpret_cast<void*>(cuGetProcAddress));
  found = nullptr;
  EXPECT_EQ(cuGetProcAddress("simgpu_check", &found, 12000, 0), kSuccess)
      << "what only the driver has is the driver's";
  EXPECT_NE(cuGetProcAddress("cuNoSuchFunction", &found, 12000, 0), kSuccess);
  EXPECT_EQ(found, nullptr);
}

TEST_F(FrontTest, ItIsOpenedAndStartedOnce) {
  EXPECT_THAT(thimble_front_start("", 0, 0), HasSubstr("already been started"));
  EXPECT_EQ(thimble_front_fraction(), 1);
  EXPECT_EQ(thimble_front_arena(-1), nullptr);
  EXPECT_EQ(thimble_front_arena(2), nullptr);
}

}  // namespace
}  // namespace thimble::xla
