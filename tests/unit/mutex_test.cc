// Mutex: one at a time, waits end, and a lock taken out of order is noticed in debug builds.
#include "allocator/base/mutex.h"

#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace thimble {
namespace {

using Clock = std::chrono::steady_clock;

TEST(Mutex, LetsOneThreadInAtATime) {
  Mutex mutex(LockRank::kArena);
  int count = 0;  // not atomic: TSan and the sum see two at once
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 20'000; ++j) {
        MutexLock lock(&mutex);
        ++count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 80'000);
}

TEST(Mutex, AWaitEndsAtItsDeadline) {
  Mutex mutex(LockRank::kArena);
  std::condition_variable_any never;
  MutexLock lock(&mutex);
  const auto deadline = Clock::now() + std::chrono::milliseconds(20);
  while (Clock::now() < deadline) mutex.WaitUntil(never, deadline);
  EXPECT_LT(Clock::now() - deadline, std::chrono::seconds(5));
}

TEST(Mutex, AWaitEndsWhenNotified) {
  Mutex mutex(LockRank::kArena);
  std::condition_variable_any condition;
  bool ready = false;
  std::thread other([&] {
    MutexLock lock(&mutex);
    ready = true;
    condition.notify_all();
  });
  {
    MutexLock lock(&mutex);
    const auto deadline = Clock::now() + std::chrono::seconds(60);
    while (!ready && Clock::now() < deadline) mutex.WaitUntil(condition, deadline);
    EXPECT_TRUE(ready);
  }
  other.join();
}

TEST(Mutex, RanksMayBeTakenInOrder) {
  Mutex arena(LockRank::kArena);
  Mutex driver(LockRank::kDriver);
  for (int i = 0; i < 2; ++i) {
    MutexLock outer(&arena);
    MutexLock inner(&driver);
  }
}

#ifdef THIMBLE_DEBUG
void LockBoth(LockRank first, LockRank second) {
  Mutex outer_mutex(first);
  Mutex inner_mutex(second);
  MutexLock outer(&outer_mutex);
  MutexLock inner(&inner_mutex);
}

TEST(MutexDeathTest, ALowerOrEqualRankIsAViolation) {
  EXPECT_DEATH(LockBoth(LockRank::kDriver, LockRank::kArena), "out of rank order");
  EXPECT_DEATH(LockBoth(LockRank::kArena, LockRank::kArena), "out of rank order");
}
#endif

}  // namespace
}  // namespace thimble
