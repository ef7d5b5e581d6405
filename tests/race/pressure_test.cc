// Threads that want more memory than the device has: a thread that waits gets memory, and none gets
// memory that work in flight still uses.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/drivers/delay_driver.h"
#include "tests/race/crew.h"

namespace thimble {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

struct Shortage {
  const char* name;
  Bytes limit;
  Bytes bytes;  // now and then each thread holds one block of this many chunks
  int rounds;
};

class WaitingForMemory : public testing::TestWithParam<Shortage> {};

// Six threads share room for two or three blocks. Every request must succeed in the end, and long
// before its time is up: another thread frees a block every few microseconds.
TEST_P(WaitingForMemory, EndsWhenAnotherThreadFrees) {
  constexpr int kThreads = 6;
  const Shortage& shortage = GetParam();
  const auto device = OpenDevice(shortage.limit);
  ArenaOptions options;
  options.retry = milliseconds(30'000);
  const auto arena = MakeArena(device.get(), options);
  std::atomic<std::uint64_t> served{0};
  std::atomic<int> failed{0};
  std::atomic<int> broken{0};
  std::atomic<milliseconds::rep> longest_ms{0};
  const auto work = [&](int thread) {
    for (int round = 0; round < shortage.rounds; ++round) {
      const Clock::time_point asked = Clock::now();
      const StreamId stream{static_cast<std::uint64_t>(thread % 2)};
      const auto address = arena->Allocate({shortage.bytes, 0, stream, 0});
      const auto waited = std::chrono::duration_cast<milliseconds>(Clock::now() - asked).count();
      if (waited > longest_ms) longest_ms = waited;
      if (!address.ok()) {
        ++failed;
        continue;
      }
      const HeldBlock block = {arena.get(), *address, shortage.bytes,
                               static_cast<std::uint64_t>(thread * 1000 + round)};
      block.Fill();
      std::this_thread::yield();
      if (!block.IsIntact()) ++broken;
      if (!arena->Free(*address, stream).ok()) ++failed;
      ++served;
    }
  };
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) threads.emplace_back(work, thread);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(served, static_cast<std::uint64_t>(kThreads * shortage.rounds));
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(broken, 0);
  EXPECT_LT(longest_ms, 10'000) << "somebody slept although memory was free";
  EXPECT_EQ(arena->GetStats().in_use, 0u);
  arena->CheckInvariants();
}

INSTANTIATE_TEST_SUITE_P(Shortages, WaitingForMemory,
                         testing::Values(Shortage{"LargeBlocks", 2 * kMiB, 700 * kKiB, 300},
                                         Shortage{"BlocksOfMagazines", 8 * kKiB, 4 * kKiB, 3000},
                                         Shortage{"SmallBlocks", 4 * kKiB, 2 * kKiB, 3000}),
                         [](const auto& info) { return std::string(info.param.name); });

// The waiting thread arrives at the same time as the very last free.
TEST(Waiting, NoticesTheVeryLastFree) {
  constexpr int kRounds = 20'000;
  const auto device = OpenDevice(kGranule);
  ArenaOptions options;
  options.retry = milliseconds(3'000);
  const auto arena = MakeArena(device.get(), options);
  std::atomic<int> asked{0};
  std::atomic<int> served{0};
  int failed = 0;
  Clock::duration longest{};
  std::thread waiter([&] {
    for (int round = 1; round <= kRounds; ++round) {
      while (asked.load() < round) std::this_thread::yield();
      const Clock::time_point begin = Clock::now();
      const auto address = arena->Allocate({kGranule, 0, StreamId{}, 0});
      longest = std::max(longest, Clock::now() - begin);
      if (!address.ok() || !arena->Free(*address, StreamId{}).ok()) ++failed;
      served = round;
    }
  });
  for (int round = 1; round <= kRounds; ++round) {
    const auto address = arena->Allocate({kGranule, 0, StreamId{}, 0});
    ASSERT_TRUE(address.ok()) << address.status();
    asked = round;
    for (int i = 0; i < round % 64; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
    ASSERT_TRUE(arena->Free(*address, StreamId{}).ok());
    while (served.load() < round) std::this_thread::yield();
  }
  waiter.join();
  EXPECT_EQ(failed, 0);
  EXPECT_LT(longest, milliseconds(1'500)) << "somebody slept although memory was free";
}

// P11. A block freed on a stream that has not come so far keeps its bytes, whatever other threads
// on other streams do: trims, shortages, stitches.
TEST(WorkInFlight, KeepsItsMemoryUntilTheStreamHasPassed) {
  const auto device = OpenDevice(2 * kMiB);
  DelayOptions delays;
  delays.calls = {};
  DelayDriver driver(*device, delays);
  const auto arena = MakeArena(&driver);
  const StreamId gpu{77};
  std::atomic<bool> stop{false};
  std::vector<Tally> tallies(3);
  Mail mail;
  std::vector<std::thread> others;
  for (int i = 0; i < 3; ++i) {
    others.emplace_back([&, i] {
      for (std::uint64_t seed = 1; !stop; ++seed) {
        Task task = {seed * 3 + static_cast<std::uint64_t>(i), {arena.get()}, &mail, 200};
        task.streams = 3;  // never 77
        tallies[i] += Perform(task);
        Bytes released = 0;
        if (i == 0 && !arena->Trim(0, &released).ok()) ++tallies[i].refused;
      }
    });
  }
  workloads::Random random(1);
  int looks = 0;
  int broken = 0;
  int refused = 0;
  for (int round = 0; round < 100; ++round) {
    std::vector<HeldBlock> blocks;
    for (int i = 0; i < 8; ++i) {
      const Bytes bytes = random.LogUniform(256, 256 * kKiB);
      const auto address = arena->Allocate({bytes, 0, gpu, 0});
      if (!address.ok()) continue;  // the others hold it all
      blocks.push_back({arena.get(), *address, bytes, static_cast<std::uint64_t>(round * 8 + i)});
      blocks.back().Fill();
    }
    driver.HoldStream(gpu);
    // The GPU still reads while the program frees; later it has passed.
    std::thread work([&] {
      const Clock::time_point end = Clock::now() + milliseconds(3);
      do {
        for (const HeldBlock& block : blocks) {
          ++looks;
          if (!block.IsIntact()) ++broken;
        }
        std::this_thread::yield();
      } while (Clock::now() < end);
      driver.ReleaseStream(gpu);
    });
    for (const HeldBlock& block : blocks) {
      if (!arena->Free(block.address, gpu).ok()) ++refused;
    }
    work.join();
  }
  stop = true;
  Tally tally;
  for (std::size_t i = 0; i < others.size(); ++i) {
    others[i].join();
    tally += tallies[i];
  }
  tally += EmptyMail(&mail);
  EXPECT_GT(looks, 1000);
  EXPECT_EQ(broken, 0);
  EXPECT_EQ(refused, 0);
  EXPECT_GT(tally.out_of_memory, 0u) << "there was no shortage: this test shows little";
  EXPECT_EQ(tally.broken + tally.refused, 0u);
  EXPECT_EQ(tally.allocations, tally.frees);
  arena->CheckInvariants();
}

}  // namespace
}  // namespace thimble
