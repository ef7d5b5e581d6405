// THIMBLE_CONF=cumemalloc:driver: the driver serves plain allocations, which can be shared with
// other processes.
#include "gmock/gmock.h"
#include "tests/xla_plugin/front_fixture.h"

namespace thimble::xla {

const char* const kFrontConf = "cumemalloc:driver";

namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(FrontTest, PlainBlocksAreTheDriversAndCanBeShared) {
  const CUstream stream = NewStream();
  const CUdeviceptr ordered = Allocate(kMiB, stream);
  const CUdeviceptr plain = AllocatePlain(kMiB);
  EXPECT_EQ(StatsOf(0).in_use, kMiB);
  CUipcMemHandle handle;
  testing::internal::CaptureStderr();
  EXPECT_EQ(cuIpcGetMemHandle(&handle, plain), Real().cuIpcGetMemHandle(&handle, plain));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), Not(HasSubstr("thimble:")))
      << "the answer is the driver's";
  EXPECT_EQ(cuIpcGetMemHandle(&handle, ordered), kNotSupported);
  EXPECT_EQ(cuMemFree_v2(plain), kSuccess);
  Free(ordered, stream);
}

TEST_F(FrontTest, WhatTheArenaKeepsIsGivenUpForThem) {
  const CUstream stream = NewStream();
  Free(Allocate(900 * kMiB, stream), stream);
  ASSERT_GE(StatsOf(0).reserved, 900 * kMiB);
  const CUdeviceptr plain = AllocatePlain(500 * kMiB);
  EXPECT_LE(StatsOf(0).reserved, 524 * kMiB);
  EXPECT_EQ(cuMemFree_v2(plain), kSuccess);
}

TEST_F(FrontTest, TheyCanBeTooLargeAllTheSame) {
  CUdeviceptr pointer = 0;
  EXPECT_EQ(cuMemAlloc_v2(&pointer, 2000 * kMiB), kOutOfMemory);
}

}  // namespace
}  // namespace thimble::xla
