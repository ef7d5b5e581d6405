// Out of memory: each kind brought about for real, and a report whose every word is true.
#include "allocator/observe/oom_report.h"

#include "gmock/gmock.h"
#include "tests/unit/arena_fixture.h"

namespace thimble {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr Bytes kDevice = 32 * kChunk;

class OutOfMemory : public ArenaTest {
 protected:
  OutOfMemory() : ArenaTest(kDevice) {}

  // Fails on purpose; the status must say the same as the report.
  OomReport Fail(Bytes bytes) {
    const ArenaStats before = stats();
    const absl::Status status = TryAllocate(bytes);
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    const OomReport report = arena_->LastOom();
    EXPECT_EQ(MessageOf(status), FormatOom(report));
    EXPECT_EQ(report.requested, bytes);
    EXPECT_EQ(report.in_use, before.in_use);
    EXPECT_EQ(report.reserved, before.reserved);
    EXPECT_EQ(stats().out_of_memory, before.out_of_memory + 1);
    EXPECT_EQ(stats().in_use, before.in_use);
    return report;
  }
};

TEST_F(OutOfMemory, BeforeTheFirstThereIsNoReport) {
  Make(kDevice);
  EXPECT_EQ(arena_->LastOom().kind, OomKind::kNone);
}

TEST_F(OutOfMemory, TheDeviceHasNoMore) {
  Make(kDevice);
  Fill(30, kChunk);
  const OomReport report = Fail(5 * kChunk);
  EXPECT_EQ(report.kind, OomKind::kTrue);
  EXPECT_EQ(report.device_free, 2 * kChunk);
  EXPECT_THAT(FormatOom(report), HasSubstr("The device has no more"));
}

TEST_F(OutOfMemory, TheLimitStopsIt) {
  Make(16 * kChunk);
  Fill(16, kChunk);
  const OomReport report = Fail(2 * kChunk);
  EXPECT_EQ(report.kind, OomKind::kLimit);
  EXPECT_EQ(report.limit, 16 * kChunk);
  EXPECT_EQ(report.missing, 2 * kChunk);
  EXPECT_THAT(FormatOom(report), HasSubstr("Raise the limit"));
}

TEST_F(OutOfMemory, SomebodyElseHoldsTheDevice) {
  Make(kDevice);
  ASSERT_TRUE(device_.driver()->Create(24 * kChunk).ok());
  Fill(4, kChunk);
  const OomReport report = Fail(8 * kChunk);
  EXPECT_EQ(report.kind, OomKind::kDriver);
  EXPECT_EQ(report.device_free, 4 * kChunk);
  EXPECT_THAT(FormatOom(report), HasSubstr("another process"));
}

// Free in the middle of every chunk: half of the memory, and no stitch can use it.
TEST_F(OutOfMemory, EnoughIsFreeInPiecesThatCannotBeJoined) {
  Make(16 * kChunk);
  const std::vector<Address> blocks = Fill(64, kChunk / 4);
  for (std::size_t i = 0; i < blocks.size(); i += 4) {
    Free(blocks[i + 1]);
    Free(blocks[i + 2]);
  }
  const OomReport report = Fail(2 * kChunk);
  EXPECT_EQ(report.kind, OomKind::kFragmentation);
  EXPECT_EQ(report.free, 8 * kChunk);
  EXPECT_EQ(report.largest_free, kChunk / 2);
  EXPECT_THAT(FormatOom(report), HasSubstr("smaller than a chunk"));
}

// P8: no advice that the settings make false.
TEST_F(OutOfMemory, WithoutStitchingTheReportDoesNotCountOnIt) {
  ArenaOptions options;
  options.stitch = false;
  Make(16 * kChunk, options);
  const std::vector<Address> blocks = Fill(16, kChunk);
  for (std::size_t i = 0; i < blocks.size(); i += 2) Free(blocks[i]);
  const OomReport report = Fail(2 * kChunk);
  EXPECT_EQ(report.kind, OomKind::kFragmentation);
  EXPECT_EQ(report.largest_stitchable, kChunk);
  EXPECT_EQ(report.missing, kChunk);
  EXPECT_THAT(FormatOom(report), HasSubstr("stitching is off"));
  EXPECT_THAT(FormatOom(report), Not(HasSubstr("with stitching")));
}

TEST_F(OutOfMemory, TheLargestHoldersAreNamed) {
  Make(16 * kChunk);
  for (std::uint64_t key = 1; key <= 12; ++key) Allocate(kChunk, kFirst, key);
  Allocate(4 * kChunk, kFirst, /*key=*/0xabc);
  const OomReport report = Fail(kChunk);
  ASSERT_EQ(report.holders.size(), OomReport::kMaxHolders);
  EXPECT_EQ(report.holders[0].key, 0xabcu);
  EXPECT_EQ(report.holders[0].bytes, 4 * kChunk);
  EXPECT_EQ(report.holders[1].key, 1u) << "of equals the lowest key first";
  EXPECT_THAT(FormatOom(report), HasSubstr("0xabc 64.00 KiB"));
}

TEST_F(OutOfMemory, BlocksThatNobodyNamedAreListedBySize) {
  Make(16 * kChunk);
  for (int i = 0; i < 3; ++i) Allocate(2 * kChunk);
  Allocate(4 * kChunk);
  const OomReport report = Fail(7 * kChunk);
  ASSERT_EQ(report.holders.size(), 2u);
  EXPECT_EQ(report.holders[0].bytes, 6 * kChunk);
  EXPECT_EQ(report.holders[0].blocks, 3u);
  EXPECT_THAT(FormatOom(report), HasSubstr("Largest holders: 3 x 32.00 KiB; 64.00 KiB"));
}

TEST_F(OutOfMemory, ADriverThatTellsNothingIsNoReasonToFail) {
  Make(4 * kChunk);
  Fill(4, kChunk);
  device_.driver()->FailAll(DriverCall::kGetMemoryInfo);
  EXPECT_EQ(Fail(kChunk).device_free, 0u);
  device_.driver()->Disarm();
}

TEST(OomReport, TheFiguresDecideTheKind) {
  OomReport report;
  report.requested = 10;
  report.limit = 100;
  report.reserved = 50;
  report.missing = 10;
  EXPECT_EQ(KindOf(report), OomKind::kDriver);
  report.missing = 60;
  EXPECT_EQ(KindOf(report), OomKind::kTrue);
  report.device_free = 60;
  EXPECT_EQ(KindOf(report), OomKind::kLimit);
  report.free = 10;
  EXPECT_EQ(KindOf(report), OomKind::kFragmentation);
  report.free = 0;
  report.missing = ~Bytes{0};
  EXPECT_EQ(KindOf(report), OomKind::kTrue) << "no sum may wrap around";
}

}  // namespace
}  // namespace thimble
