// Arena, memory: how much it takes from the driver, when it gives memory back, and when it waits.
#include <chrono>
#include <map>
#include <thread>

#include "allocator/offline/logs/log_reader.h"
#include "gmock/gmock.h"
#include "tests/unit/arena_fixture.h"

namespace thimble {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

class ArenaMemory : public ArenaTest {
 protected:
  void FreeEverySecond(const std::vector<Address>& blocks) {
    for (std::size_t i = 1; i < blocks.size(); i += 2) Free(blocks[i]);
  }
};

TEST_F(ArenaMemory, PreallocationTakesAllAtOnceAndNothingLater) {
  ArenaOptions options;
  options.preallocate = true;
  Make(64 * kChunk, options);
  EXPECT_EQ(stats().reserved, 64 * kChunk);
  EXPECT_EQ(device_.used(), 64 * kChunk);
  const std::uint64_t created = device_.calls(DriverCall::kCreate);
  Fill(64, kChunk);
  EXPECT_EQ(device_.calls(DriverCall::kCreate), created);
}

TEST_F(ArenaMemory, PreallocationThatDoesNotSucceedLeavesNothing) {
  ArenaOptions options;
  options.preallocate = true;
  options.chunk_bytes = kChunk;
  options.limit = 64 * kMiB;
  const auto taken = device_.driver()->Create(kChunk);  // another process was faster
  ASSERT_TRUE(taken.ok());
  const auto arena = Arena::Create(options, device_.driver());
  EXPECT_EQ(arena.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(device_.used(), kChunk);
  EXPECT_EQ(device_.host().areas(), 0u);
}

TEST_F(ArenaMemory, GrowthIsExact) {
  Make(64 * kChunk);
  EXPECT_EQ(stats().reserved, 0u);
  Fill(5, kChunk);
  EXPECT_EQ(stats().reserved, 5 * kChunk);
  EXPECT_EQ(device_.used(), 5 * kChunk);
}

TEST_F(ArenaMemory, FreeMemoryIsStitchedBeforeMuchMoreIsTaken) {
  Make(64 * kChunk);
  FreeEverySecond(Fill(16, kChunk));
  const Address address = Allocate(8 * kChunk);
  EXPECT_EQ(stats().reserved, 16 * kChunk);
  EXPECT_EQ(arena_->Query(address)->seams, 7u);
  EXPECT_EQ(stats().stitches, 1u);
}

TEST_F(ArenaMemory, WithoutStitchingScatteredMemoryDoesNotServe) {
  ArenaOptions options;
  options.stitch = false;
  Make(16 * kChunk, options);
  FreeEverySecond(Fill(16, kChunk));
  EXPECT_EQ(TryAllocate(2 * kChunk).code(), absl::StatusCode::kResourceExhausted);
  Allocate(kChunk);
}

TEST_F(ArenaMemory, TheLimitIsKept) {
  Make(10 * kChunk);
  Fill(10, kChunk);
  EXPECT_EQ(TryAllocate(kUnit).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(device_.used(), 10 * kChunk);
  EXPECT_EQ(stats().out_of_memory, 1u);
}

TEST_F(ArenaMemory, TrimGivesFreeChunksBackAndKeepsContents) {
  Make(64 * kChunk);
  const std::vector<Address> blocks = Fill(16, kChunk);
  for (std::size_t i = 0; i < blocks.size(); ++i) ByteAt(blocks[i] + i) = 100 + i;
  FreeEverySecond(blocks);
  EXPECT_EQ(Trim(0), 8 * kChunk);
  EXPECT_EQ(device_.used(), 8 * kChunk);
  EXPECT_EQ(stats().vacant, 8 * kChunk);
  for (std::size_t i = 0; i < blocks.size(); i += 2) EXPECT_EQ(ByteAt(blocks[i] + i), 100 + i);
}

TEST_F(ArenaMemory, TrimKeepsAsManyBytesAsRequested) {
  Make(64 * kChunk);
  for (const Address address : Fill(16, kChunk)) Free(address);
  EXPECT_EQ(Trim(10 * kChunk), 6 * kChunk);
  EXPECT_EQ(stats().reserved, 10 * kChunk);
  EXPECT_EQ(Trim(10 * kChunk), 0u);
  EXPECT_EQ(Trim(0), 10 * kChunk);
}

TEST_F(ArenaMemory, TrimTakesMemoryThatThreadsAndSlabsKeep) {
  Make(64 * kChunk);
  for (const Address address : Fill(300, kUnit)) Free(address);
  EXPECT_EQ(stats().magazines, 300 * kUnit);
  Trim(0);
  EXPECT_EQ(stats().reserved, 0u);
  EXPECT_EQ(stats().magazines, 0u);
}

TEST_F(ArenaMemory, HolesAreRefilledBeforeNewPlacesAreUsed) {
  Make(64 * kChunk);
  const std::vector<Address> blocks = Fill(16, kChunk);
  FreeEverySecond(blocks);
  Trim(0);
  for (std::size_t i = 1; i < blocks.size(); i += 2) {
    EXPECT_EQ(Allocate(kChunk), blocks[i]) << "the lowest hole first";
  }
  EXPECT_EQ(stats().vacant, 0u);
  EXPECT_EQ(stats().reserved, 16 * kChunk);
}

// Scattered holes are useless to a block that must be in one piece.
TEST_F(ArenaMemory, WithoutStitchingHolesDoNotStandInTheWay) {
  ArenaOptions options;
  options.stitch = false;
  Make(64 * kChunk, options);
  FreeEverySecond(Fill(16, kChunk));
  Trim(0);
  const Address address = Allocate(4 * kChunk);
  ByteAt(address + 4 * kChunk - 1) = 1;
  EXPECT_EQ(stats().reserved, 12 * kChunk);
}

TEST_F(ArenaMemory, AStitchedBlockSurvivesATrim) {
  Make(32 * kChunk);
  FreeEverySecond(Fill(16, kChunk));
  const Address address = Allocate(5 * kChunk);
  for (Bytes at = 0; at < 5 * kChunk; at += kGranule) ByteAt(address + at) = at / kGranule;
  EXPECT_EQ(Trim(0), 3 * kChunk);
  for (Bytes at = 0; at < 5 * kChunk; at += kGranule)
    EXPECT_EQ(ByteAt(address + at), at / kGranule);
}

TEST_F(ArenaMemory, ARequestWaitsForAFreeOfAnotherThread) {
  ArenaOptions options;
  options.retry = milliseconds(20'000);
  Make(4 * kChunk, options);
  const std::vector<Address> blocks = Fill(4, kChunk);
  std::thread other([&] {
    std::this_thread::sleep_for(milliseconds(30));
    for (const Address address : blocks) Free(address);
  });
  const auto start = Clock::now();
  EXPECT_TRUE(TryAllocate(2 * kChunk).ok());
  EXPECT_LT(Clock::now() - start, milliseconds(15'000)) << "it slept through the free";
  other.join();
}

TEST_F(ArenaMemory, WaitingEnds) {
  ArenaOptions options;
  options.retry = milliseconds(60);
  Make(4 * kChunk, options);
  Fill(4, kChunk);
  const auto start = Clock::now();
  EXPECT_EQ(TryAllocate(kChunk).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_GE(Clock::now() - start, milliseconds(60));
  EXPECT_LT(Clock::now() - start, milliseconds(10'000));
}

TEST_F(ArenaMemory, PeaksAreRememberedUntilReset) {
  Make(64 * kChunk);
  for (const Address address : Fill(8, kChunk)) Free(address);
  Trim(0);
  EXPECT_EQ(stats().peak_in_use, 8 * kChunk);
  EXPECT_EQ(stats().peak_reserved, 8 * kChunk);
  arena_->ResetPeaks();
  EXPECT_EQ(stats().peak_in_use, 0u);
  EXPECT_EQ(stats().peak_reserved, 0u);
}

TEST_F(ArenaMemory, TheLimitCanBeLoweredToWhatIsInUseAndRaisedAgain) {
  Make(8 * kChunk);
  const Address kept = Allocate(kChunk);
  Free(Allocate(4 * kChunk));
  ASSERT_EQ(arena_->GetStats().reserved, 5 * kChunk);
  ASSERT_TRUE(arena_->SetLimit(2 * kChunk).ok());
  EXPECT_EQ(arena_->GetStats().limit, 2 * kChunk);
  EXPECT_LE(arena_->GetStats().reserved, 2 * kChunk);
  EXPECT_TRUE(absl::IsResourceExhausted(arena_->Allocate({2 * kChunk, 0, kFirst, 0}).status()));
  const Address second = Allocate(kChunk);
  EXPECT_TRUE(absl::IsResourceExhausted(arena_->SetLimit(kChunk)));
  EXPECT_TRUE(absl::IsInvalidArgument(arena_->SetLimit(kChunk - 1)));
  EXPECT_TRUE(absl::IsInvalidArgument(arena_->SetLimit(9 * kChunk)));
  EXPECT_EQ(arena_->GetStats().limit, 2 * kChunk) << "an error changes nothing";
  arena_->CheckInvariants();
  ASSERT_TRUE(arena_->SetLimit(8 * kChunk).ok());
  Free(Allocate(6 * kChunk));
  Free(kept);
  Free(second);
}

// The order of events: a block is logged as freed before its memory is logged as allocated again.
TEST_F(ArenaMemory, TheLogOfAnArenaNeverShowsAnOverlap) {
  Make(8 * kChunk);
  const std::string path = testing::TempDir() + "/arena.log";
  ASSERT_TRUE(arena_->StartLog(path).ok());
  for (int i = 0; i < 1000; ++i) {
    const Address small = Allocate(kUnit * (1 + i % 20), kFirst, /*key=*/i);
    const Address large = Allocate(kChunk);
    arena_->MarkStep();
    Free(small);
    Free(large);
  }
  ASSERT_TRUE(arena_->StopLog().ok());
  std::map<std::uint64_t, Bytes> live;  // by address
  int steps = 0;
  const std::vector<Event> events = ReadEventLog(path).value();
  for (const Event& event : events) {
    if (event.kind == EventKind::kStep) ++steps;
    if (event.kind == EventKind::kFree) {
      ASSERT_EQ(live.erase(event.address), 1u);
    }
    if (event.kind != EventKind::kAllocate) continue;
    const auto next = live.lower_bound(event.address);
    ASSERT_TRUE(next == live.end() || event.address + event.bytes <= next->first);
    ASSERT_TRUE(live.emplace(event.address, event.bytes).second);
  }
  EXPECT_EQ(steps, 1000);
  EXPECT_TRUE(live.empty());
}

TEST_F(ArenaMemory, TheLogSaysWhereStepsBeginIfRequestsDo) {
  Make(8 * kChunk);
  const std::string path = testing::TempDir() + "/arena_steps.log";
  ASSERT_TRUE(arena_->StartLog(path).ok());
  // The third request of step 7 comes when step 8 has begun; 0 is none.
  for (const std::uint64_t step : {7, 7, 8, 7, 8, 0, 9, 9}) {
    const auto block = arena_->Allocate({kChunk, 0, kFirst, /*key=*/1, step});
    ASSERT_TRUE(block.ok()) << block.status();
    Free(*block);
  }
  ASSERT_TRUE(arena_->StopLog().ok());
  const std::vector<Event> events = ReadEventLog(path).value();
  std::string seen;
  for (const Event& event : events) {
    if (event.kind == EventKind::kStep) seen += 'S';
    if (event.kind == EventKind::kAllocate) seen += 'A';
  }
  EXPECT_EQ(seen, "SAASAAAASAA");
}

}  // namespace
}  // namespace thimble
