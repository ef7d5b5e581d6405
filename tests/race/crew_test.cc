// Eight threads on one arena, with everything else that can happen at the same time.
#include "tests/race/crew.h"

#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "gtest/gtest.h"
#include "tests/drivers/delay_driver.h"
#include "tests/race/watch.h"

namespace thimble {
namespace {

constexpr int kThreads = 8;
constexpr std::uint64_t kOperations = 50'000;  // of each thread

// All blocks are back, none was broken, and the arena agrees.
void ExpectNothingLost(const Tally& tally, Arena* arena) {
  EXPECT_EQ(tally.broken, 0u);
  EXPECT_EQ(tally.refused, 0u);
  EXPECT_EQ(tally.allocations, tally.frees);
  const ArenaStats stats = arena->GetStats();
  EXPECT_TRUE(stats.AddsUp());
  EXPECT_EQ(stats.in_use, 0u);
  EXPECT_EQ(stats.live_blocks, 0u);
  arena->CheckInvariants();
  Bytes released = 0;
  EXPECT_TRUE(arena->Trim(0, &released).ok());
  EXPECT_EQ(arena->GetStats().reserved, 0u);
}

TEST(Crew, EightThreadsOnOneArenaLoseNothing) {
  const auto device = OpenDevice();
  const auto arena = MakeArena(device.get());
  Mail mail;
  Tally tally = PerformOnThreads({/*seed=*/1, {arena.get()}, &mail, kOperations}, kThreads);
  EXPECT_EQ(tally.operations, kThreads * kOperations);
  EXPECT_GT(tally.received, kOperations / 4);
  EXPECT_EQ(arena->GetStats().allocations, tally.allocations);
  tally += EmptyMail(&mail);
  EXPECT_GT(arena->GetStats().stitches, 0u);
  ExpectNothingLost(tally, arena.get());
}

TEST(Crew, TrimStatsSnapshotAndLogAreTrueInTheMiddleOfIt) {
  const auto device = OpenDevice();
  const auto arena = MakeArena(device.get());
  Mail mail;
  Watch watch(arena.get(), testing::TempDir() + "/crew_test.log");
  Tally tally;
  for (std::uint64_t seed = 100; watch.samples() < 64; seed += kThreads) {
    tally += PerformOnThreads({seed, {arena.get()}, &mail, kOperations / 10}, kThreads);
  }
  watch.Stop();
  EXPECT_GE(tally.operations, kThreads * kOperations / 10);
  EXPECT_EQ(watch.untrue(), "");
  tally += EmptyMail(&mail);
  ExpectNothingLost(tally, arena.get());
}

// All blocks move between the first and the last magazine while the statistics are taken, which go
// through the magazines one by one.
TEST(Crew, StatisticsNeverCountABlockTwice) {
  constexpr int kMagazines = 40;
  const auto device = OpenDevice();
  const auto arena = MakeArena(device.get());
  std::atomic<int> ready{0};
  std::atomic<bool> stop{false};
  std::atomic<bool> last_has_them{false};
  std::array<Address, 32> blocks{};
  std::uint64_t moves = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kMagazines; ++i) {
    threads.emplace_back([&, i] {
      const bool is_last = i == kMagazines - 1;
      EXPECT_TRUE(arena->Free(arena->Allocate({kUnit, 0, StreamId{}, 0}).value(), StreamId{}).ok());
      ++ready;
      while (!stop) {
        if ((i != 0 && !is_last) || last_has_them != is_last) {
          std::this_thread::sleep_for(std::chrono::microseconds(i == 0 || is_last ? 0 : 10'000));
          continue;
        }
        for (const Address block : blocks) EXPECT_TRUE(arena->Free(block, StreamId{}).ok());
        std::this_thread::sleep_for(std::chrono::microseconds(moves % 2 == 0 ? 1 : 30));
        for (Address& block : blocks) block = arena->Allocate({kUnit, 0, StreamId{}, 0}).value();
        ++moves;
        last_has_them = !is_last;
      }
    });
    while (ready != i + 1) std::this_thread::yield();  // so that magazines are in order
  }
  int samples = 0;
  int untrue = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(1500);
  while (std::chrono::steady_clock::now() < end) {
    const ArenaStats stats = arena->GetStats();
    ++samples;
    if (!stats.AddsUp() || stats.in_use > stats.reserved || stats.magazines > stats.reserved ||
        stats.live_blocks * kUnit > stats.reserved) {
      ++untrue;
    }
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(samples, 100);
  EXPECT_GT(moves, 100u);
  EXPECT_EQ(untrue, 0);
}

TEST(Crew, ThreadsThatEndHandTheirMagazinesOn) {
  const auto device = OpenDevice();
  const auto arena = MakeArena(device.get());
  Mail mail;
  Task task = {/*seed=*/200, {arena.get()}, &mail, /*operations=*/400};
  task.largest = 8 * kKiB;  // mostly blocks that magazines hold
  Tally tally = PerformOnThreads(task, kThreads, /*generations=*/60);
  EXPECT_EQ(tally.operations, kThreads * 60u * 400);
  tally += EmptyMail(&mail);
  ExpectNothingLost(tally, arena.get());
}

TEST(Crew, NoMoreMagazinesThanThreadsAtOnce) {
  MagazineRack rack;
  std::atomic<int> visits{0};
  std::vector<std::thread> places;
  for (int i = 0; i < kThreads; ++i) {
    places.emplace_back([&] {
      for (int generation = 0; generation < 60; ++generation) {
        std::thread([&] {
          EXPECT_EQ(rack.Mine(), rack.Mine());
          ++visits;
        }).join();
      }
    });
  }
  for (std::thread& place : places) place.join();
  int magazines = 0;
  rack.ForEach([&](Magazine&) { ++magazines; });
  EXPECT_EQ(visits, kThreads * 60);
  EXPECT_GE(magazines, 1);
  EXPECT_LE(magazines, kThreads);
}

TEST(Crew, TheSameThreadsUseTwoArenasInTurn) {
  const auto device = OpenDevice(2 * kLimit);
  ArenaOptions half;
  half.limit = kLimit;
  const auto first = MakeArena(device.get(), half);
  const auto second = MakeArena(device.get(), half);
  Mail mail;
  Tally tally = PerformOnThreads(
      {/*seed=*/300, {first.get(), second.get()}, &mail, kOperations / 4}, kThreads);
  EXPECT_EQ(tally.operations, kThreads * kOperations / 4);
  tally += EmptyMail(&mail);
  EXPECT_GT(first->GetStats().allocations, tally.allocations / 3);
  EXPECT_GT(second->GetStats().allocations, tally.allocations / 3);
  EXPECT_EQ(second->GetStats().live_blocks, 0u);
  second->CheckInvariants();
  ExpectNothingLost(tally, first.get());
}

// Threads that outlive an arena keep nothing of it, and use the next one.
TEST(Crew, ArenasComeAndGoWhileThreadsLive) {
  constexpr int kArenas = 30;
  constexpr int kStayers = 4;
  const auto device = OpenDevice();
  std::unique_ptr<Arena> arena;
  std::atomic<int> round{0};
  std::atomic<int> done{0};
  std::vector<Tally> tallies(kStayers);
  Mail mail;
  std::vector<std::thread> stayers;
  for (int i = 0; i < kStayers; ++i) {
    stayers.emplace_back([&, i] {
      for (int mine = 1; mine <= kArenas; ++mine) {
        while (round.load() < mine) std::this_thread::yield();
        const auto seed = static_cast<std::uint64_t>(400 + mine * kStayers + i);
        tallies[i] += Perform({seed, {arena.get()}, &mail, /*operations=*/500});
        ++done;
      }
    });
  }
  Tally tally;
  for (int mine = 1; mine <= kArenas; ++mine) {
    arena = MakeArena(device.get());
    round = mine;
    while (done.load() < mine * kStayers) std::this_thread::yield();
    tally += EmptyMail(&mail);
    EXPECT_EQ(arena->GetStats().in_use, 0u);
    arena.reset();
    EXPECT_EQ(device->GetMemoryInfo()->free_bytes, kLimit);
  }
  for (std::thread& stayer : stayers) stayer.join();
  for (const Tally& one : tallies) tally += one;
  EXPECT_EQ(tally.operations, kArenas * kStayers * 500u);
  EXPECT_EQ(tally.broken + tally.refused, 0u);
  EXPECT_EQ(tally.allocations, tally.frees);
}

class CrewWithDelays : public testing::TestWithParam<std::uint64_t> {};

// The seeded delays of the driver open windows at other places each time.
TEST_P(CrewWithDelays, LosesNothing) {
  const auto device = OpenDevice();
  DelayOptions delays;
  delays.seed = GetParam();
  delays.max_us = 20;
  DelayDriver slow(*device, delays);
  const auto arena = MakeArena(&slow);
  Mail mail;
  Watch watch(arena.get(), testing::TempDir() + "/crew_test.log");
  Tally tally = PerformOnThreads(
      {/*seed=*/500 * GetParam(), {arena.get()}, &mail, /*operations=*/1000}, kThreads);
  watch.Stop();
  EXPECT_EQ(watch.untrue(), "");
  EXPECT_GT(slow.delays(), 1000u);
  tally += EmptyMail(&mail);
  ExpectNothingLost(tally, arena.get());
}

INSTANTIATE_TEST_SUITE_P(Seeds, CrewWithDelays, testing::Range<std::uint64_t>(1, 4));

}  // namespace
}  // namespace thimble
