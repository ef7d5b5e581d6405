// Out of memory: causes each kind for real and checks every word of the report. Runs each setting
// that a report names, and the request then fits.
#include "allocator/observe/oom_report.h"

#include <chrono>
#include <thread>

#include "gmock/gmock.h"
#include "tests/unit/arena_fixture.h"

namespace thimble {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
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

// --- The four kinds, to the letter ---------------------------------------------------------------

TEST_F(OutOfMemory, TheDeviceHasNoMore) {
  Make(kDevice);
  Fill(30, kChunk);
  const OomReport report = Fail(5 * kChunk);
  EXPECT_EQ(report.kind, OomKind::kTrue);
  EXPECT_EQ(FormatOom(report),
            "out of memory (true): memory in use and the request together exceed the device.\n"
            "  requested  80.00 KiB\n"
            "  in use     480.00 KiB; 480.00 KiB reserved of a limit of 512.00 KiB\n"
            "  free       0 B; largest possible block 0 B (0 B without stitching)\n"
            "  device     32.00 KiB free of 512.00 KiB\n"
            "  holders    30 x 16.00 KiB\n"
            "  needs      48.00 KiB more\n"
            "  also       `thimble run -- PROGRAM` records the program, tries the other settings, "
            "and says which fit");
}

TEST_F(OutOfMemory, TheLimitStopsIt) {
  Make(16 * kChunk);
  Fill(15, kChunk);
  const OomReport report = Fail(2 * kChunk);
  EXPECT_EQ(report.kind, OomKind::kLimit);
  EXPECT_EQ(FormatOom(report, "decoder/Relu"),
            "out of memory (limit): the limit is reached, but the device has more memory.\n"
            "  requested  32.00 KiB by decoder/Relu\n"
            "  in use     240.00 KiB; 240.00 KiB reserved of a limit of 256.00 KiB\n"
            "  free       0 B; largest possible block 0 B (0 B without stitching)\n"
            "  device     272.00 KiB free of 512.00 KiB\n"
            "  holders    15 x 16.00 KiB\n"
            "  needs      16.00 KiB more\n"
            "  fits with  limit:278528\n"
            "  also       `thimble run -- PROGRAM` records the program, tries the other settings, "
            "and says which fit");
}

TEST_F(OutOfMemory, AnotherProcessHoldsTheDevice) {
  Make(kDevice);
  const auto other = device_.driver()->Create(24 * kChunk);
  ASSERT_TRUE(other.ok());
  Fill(4, kChunk);
  const OomReport report = Fail(8 * kChunk);
  EXPECT_EQ(report.kind, OomKind::kDriver);
  EXPECT_EQ(FormatOom(report),
            "out of memory (driver): the driver refused memory within the limit.\n"
            "  requested  128.00 KiB\n"
            "  in use     64.00 KiB; 64.00 KiB reserved of a limit of 512.00 KiB\n"
            "  free       0 B; largest possible block 0 B (0 B without stitching)\n"
            "  device     64.00 KiB free of 512.00 KiB; 384.00 KiB are held outside Thimble, by "
            "other processes or by the driver\n"
            "  holders    4 x 16.00 KiB\n"
            "  needs      64.00 KiB more\n"
            "  also       `thimble run -- PROGRAM` records the program, tries the other settings, "
            "and says which fit");
  ASSERT_TRUE(device_.driver()->Destroy(*other).ok());
  Allocate(8 * kChunk);
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
  EXPECT_EQ(FormatOom(report),
            "out of memory (fragmentation): enough memory is free, but not in one block.\n"
            "  requested  32.00 KiB\n"
            "  in use     128.00 KiB; 256.00 KiB reserved of a limit of 256.00 KiB\n"
            "  free       128.00 KiB; largest possible block 8.00 KiB (8.00 KiB without "
            "stitching)\n"
            "  device     256.00 KiB free of 512.00 KiB\n"
            "  holders    32 x 4.00 KiB\n"
            "  needs      32.00 KiB more\n"
            "  fits with  limit:294912\n"
            "  also       `thimble run -- PROGRAM` records the program, tries the other settings, "
            "and says which fit");
}

// --- What would fit, run -------------------------------------------------------------------------

TEST_F(OutOfMemory, TheLimitThatWouldFitFitsAndNoSmallerOneDoes) {
  const auto run = [&](Bytes limit) {
    Make(limit);
    const std::vector<Address> blocks = Fill(12, kChunk + kChunk / 4);
    for (std::size_t i = 0; i < blocks.size(); i += 2) Free(blocks[i]);
    const absl::Status status = TryAllocate(13 * kChunk);
    const OomReport report = arena_->LastOom();
    arena_.reset();
    EXPECT_EQ(status.ok(), report.kind == OomKind::kNone) << status;
    return report;
  };
  const OomReport report = run(16 * kChunk);
  ASSERT_GT(report.fits_limit, 16 * kChunk);
  EXPECT_EQ(run(report.fits_limit).kind, OomKind::kNone);
  EXPECT_EQ(run(report.fits_limit - kChunk).kind, OomKind::kLimit);
}

TEST_F(OutOfMemory, NoLimitIsNamedIfTheDeviceHasTooLittle) {
  Make(16 * kChunk);
  ASSERT_TRUE(device_.driver()->Create(8 * kChunk).ok());
  Fill(16, kChunk);
  const OomReport report = Fail(9 * kChunk);
  EXPECT_EQ(report.kind, OomKind::kDriver) << "another process holds it";
  EXPECT_EQ(report.fits_limit, 0u);
  EXPECT_EQ(report.held_outside, 8 * kChunk);
}

TEST_F(OutOfMemory, ADriverThatRefusesWithRoomIsDistinguishedFromAFullOne) {
  Make(kDevice);
  Fill(4, kChunk);
  device_.driver()->FailAll(DriverCall::kCreate);
  const OomReport report = Fail(2 * kChunk);
  device_.driver()->Disarm();
  EXPECT_EQ(report.kind, OomKind::kDriver);
  EXPECT_EQ(report.held_outside, 0u);
  EXPECT_EQ(report.missing, 0u);
  EXPECT_EQ(report.fits_limit, 0u) << "it is high enough";
  EXPECT_THAT(FormatOom(report),
              HasSubstr("\n  refused    by the driver, although it reports enough free memory"));
}

// P8: no advice that the settings make false.
TEST_F(OutOfMemory, StitchingIsNamedWhereItFitsAndIsOff) {
  const auto run = [&](bool stitch, Bytes bytes) {
    ArenaOptions options;
    options.stitch = stitch;
    Make(16 * kChunk, options);
    const std::vector<Address> blocks = Fill(16, kChunk);
    for (std::size_t i = 0; i < blocks.size(); i += 2) Free(blocks[i]);
    const bool fits = TryAllocate(bytes).ok();
    const OomReport report = arena_->LastOom();
    arena_.reset();
    EXPECT_EQ(fits, report.kind == OomKind::kNone);
    return report;
  };
  const OomReport report = run(/*stitch=*/false, 8 * kChunk);
  EXPECT_EQ(report.kind, OomKind::kFragmentation);
  EXPECT_EQ(report.largest_free, kChunk);
  EXPECT_EQ(report.largest_stitchable, 8 * kChunk);
  EXPECT_TRUE(report.fits_stitch);
  EXPECT_THAT(FormatOom(report),
              AllOf(HasSubstr("128.00 KiB with stitching, which is off"),
                    HasSubstr("fits with  limit:"), HasSubstr(", or stitch:on")));
  EXPECT_EQ(run(/*stitch=*/true, 8 * kChunk).kind, OomKind::kNone);

  EXPECT_FALSE(run(/*stitch=*/false, 9 * kChunk).fits_stitch);
  const OomReport on = run(/*stitch=*/true, 9 * kChunk);
  EXPECT_FALSE(on.fits_stitch);
  EXPECT_THAT(FormatOom(on), Not(HasSubstr("stitch:on")));
}

// Blocks of eight chunks, of which ops have used `idle` and use `pinned` now.
class Swapping : public OutOfMemory {
 protected:
  static constexpr Bytes kBlock = 8 * kChunk;

  OomReport Run(bool swap, std::size_t idle, std::size_t pinned, Bytes bytes = kBlock,
                Bytes host_limit = 0) {
    ArenaOptions options;
    options.host_limit = host_limit;
    options.swap = swap ? SwapMode::kAuto : SwapMode::kWatch;
    Make(kDevice, options);
    const std::vector<Address> blocks = Fill(4, kBlock);
    const auto used = absl::MakeConstSpan(blocks).first(idle);
    EXPECT_TRUE(arena_->Pin(used, OpName()).ok());
    EXPECT_TRUE(arena_->Unpin(used, {}, kFirst, /*takes_turn=*/false).ok());
    EXPECT_TRUE(arena_->Pin(used.first(pinned), OpName()).ok());
    EXPECT_EQ(stats().swap_out_bytes, 0u);
    const bool fits = TryAllocate(bytes).ok();
    const OomReport report = arena_->LastOom();
    EXPECT_EQ(fits, report.kind == OomKind::kNone);
    EXPECT_TRUE(arena_->Unpin(used.first(pinned), {}, kFirst, /*takes_turn=*/false).ok());
    arena_->CheckInvariants();
    arena_.reset();
    return report;
  }
};

TEST_F(Swapping, ItIsNamedWhereItFits) {
  const OomReport report = Run(/*swap=*/false, /*idle=*/3, /*pinned=*/1, 2 * kBlock);
  EXPECT_EQ(report.kind, OomKind::kTrue);
  EXPECT_TRUE(report.swap.fits);
  EXPECT_EQ(report.swap.leaves, 2 * kBlock);
  EXPECT_EQ(report.swap.stays, 2 * kBlock);
  EXPECT_THAT(FormatOom(report),
              AllOf(HasSubstr("\n  fits with  swap:auto (256.00 KiB leave the device, 0.0 ms at "
                              "12.3 GiB/s)"),
                    Not(HasSubstr("thimble run"))));
  EXPECT_EQ(report.step_ns, 0u);
  EXPECT_EQ(Run(/*swap=*/true, 3, 1, 2 * kBlock).kind, OomKind::kNone);
}

// Two blocks leave. As blocks leave whole, there must be room for one more.
TEST_F(Swapping, ItIsNotNamedWhereTheHostHasTooLittleRoom) {
  EXPECT_TRUE(Run(/*swap=*/false, 3, 1, 2 * kBlock, /*host_limit=*/3 * kBlock).swap.fits);
  const OomReport report = Run(/*swap=*/false, 3, 1, 2 * kBlock, 3 * kBlock - kChunk);
  EXPECT_EQ(report.swap.leaves, 2 * kBlock);
  EXPECT_FALSE(report.swap.fits);
}

TEST_F(Swapping, ItsCostIsGivenIfStepsAreKnown) {
  ArenaOptions options;
  options.swap = SwapMode::kWatch;
  Make(kDevice, options);
  constexpr std::chrono::milliseconds kStep{20};
  for (std::uint64_t step = 1; step <= 3; ++step) {
    for (int i = 0; i < 20; ++i) {
      const auto block = arena_->Allocate({kBlock, 0, kFirst, /*key=*/1, step});
      ASSERT_TRUE(block.ok());
      ASSERT_TRUE(arena_->Pin({*block}, {/*key=*/7, step}).ok());
      ASSERT_TRUE(arena_->Unpin({*block}, {}, kFirst, /*takes_turn=*/false).ok());
      Free(*block);
    }
    std::this_thread::sleep_for(kStep);
  }
  const std::vector<Address> blocks = Fill(4, kBlock);
  EXPECT_TRUE(arena_->Pin(blocks, OpName()).ok());
  EXPECT_TRUE(arena_->Unpin(blocks, {}, kFirst, /*takes_turn=*/false).ok());
  EXPECT_FALSE(TryAllocate(kBlock).ok());
  const OomReport report = arena_->LastOom();
  EXPECT_TRUE(report.swap.fits);
  EXPECT_GE(std::chrono::nanoseconds(report.step_ns), kStep);
  EXPECT_THAT(FormatOom(report), ContainsRegex("steps take an estimated [0-9.]+ % longer"));
  for (const Address block : blocks) Free(block);
}

TEST_F(Swapping, ItIsNotNamedIfBlocksInUseCannotLeave) {
  const OomReport report = Run(/*swap=*/false, /*idle=*/3, /*pinned=*/2, 2 * kBlock);
  EXPECT_FALSE(report.swap.fits);
  EXPECT_THAT(FormatOom(report),
              AllOf(HasSubstr("not with   swap:auto: 384.00 KiB cannot leave now, 128.00 KiB can"),
                    Not(HasSubstr("fits with"))));
  const OomReport on = Run(/*swap=*/true, 3, 2, 2 * kBlock);
  EXPECT_EQ(on.kind, OomKind::kTrue);
  EXPECT_THAT(FormatOom(on), AllOf(HasSubstr("swapping   does not help: 384.00 KiB cannot leave"),
                                   Not(HasSubstr("swap:auto"))));
}

TEST_F(Swapping, ItIsNotNamedForARequestThatIsLargerThanTheLimit) {
  Make(kDevice);
  EXPECT_THAT(FormatOom(Fail(kDevice + kChunk)),
              AllOf(HasSubstr("not with   swap:auto: the request alone is larger than the limit"),
                    Not(HasSubstr("thimble run"))));
}

// --- The rest of the report ----------------------------------------------------------------------

TEST_F(OutOfMemory, TheLargestHoldersAreNamed) {
  Make(16 * kChunk);
  for (std::uint64_t key = 1; key <= 12; ++key) Allocate(kChunk, kFirst, key);
  Allocate(4 * kChunk, kFirst, /*key=*/0xabc);
  OomReport report = Fail(kChunk);
  ASSERT_EQ(report.holders.size(), OomReport::kMaxHolders);
  EXPECT_EQ(report.holders[0].key, 0xabcu);
  EXPECT_EQ(report.holders[0].bytes, 4 * kChunk);
  EXPECT_EQ(report.holders[1].key, 1u) << "of equals the lowest key first";
  report.holders[0].name = "encoder/MatMul";
  EXPECT_THAT(FormatOom(report), HasSubstr("holders    64.00 KiB encoder/MatMul; 16.00 KiB 0x1; "));
}

TEST_F(OutOfMemory, BlocksWithoutANameAreListedBySize) {
  Make(16 * kChunk);
  for (int i = 0; i < 3; ++i) Allocate(2 * kChunk);
  Allocate(4 * kChunk);
  const OomReport report = Fail(7 * kChunk);
  ASSERT_EQ(report.holders.size(), 2u);
  EXPECT_EQ(report.holders[0].bytes, 6 * kChunk);
  EXPECT_EQ(report.holders[0].blocks, 3u);
  EXPECT_THAT(FormatOom(report), HasSubstr("holders    3 x 32.00 KiB; 64.00 KiB"));
}

TEST_F(OutOfMemory, ADriverThatReportsNoFiguresCausesNoFailure) {
  Make(4 * kChunk);
  Fill(4, kChunk);
  device_.driver()->FailAll(DriverCall::kGetMemoryInfo);
  const OomReport report = Fail(kChunk);
  EXPECT_EQ(report.device_free, 0u);
  EXPECT_EQ(report.fits_limit, 0u) << "nobody knows whether the device has more";
  EXPECT_THAT(FormatOom(report), HasSubstr("device     an unknown part free of 512.00 KiB"));
  device_.driver()->Disarm();
}

TEST(OomReport, TheFiguresDecideTheKind) {
  OomReport report;
  report.requested = 10;
  report.limit = 100;
  report.device_total = 200;
  report.reserved = report.in_use = 50;
  report.shortfall = 10;
  EXPECT_EQ(KindOf(report), OomKind::kDriver);
  report.shortfall = report.requested = 60;
  EXPECT_EQ(KindOf(report), OomKind::kDriver) << "the limit is reached, but the device has no more";
  report.device_free = 60;
  EXPECT_EQ(KindOf(report), OomKind::kLimit);
  report.device_total = 100;
  EXPECT_EQ(KindOf(report), OomKind::kTrue);
  report.free = 60;
  EXPECT_EQ(KindOf(report), OomKind::kFragmentation);
  report.shortfall = 0;
  report.device_total = 200;
  EXPECT_EQ(KindOf(report), OomKind::kDriver) << "there is a place, which could not be mapped";
  report.free = 0;
  report.requested = ~Bytes{0};
  EXPECT_EQ(KindOf(report), OomKind::kTrue) << "no sum may wrap around";
}

}  // namespace
}  // namespace thimble
