// A debug build stops with a report at the first lock that is taken out of order. A deadlock would
// come later, on another machine, without a report. Built with THIMBLE_DEBUG in every
// configuration.
#include <csignal>

#include "allocator/base/check.h"
#include "allocator/base/mutex.h"
#include "gtest/gtest.h"

namespace thimble {
namespace {

#ifndef THIMBLE_DEBUG
#error "this test is about debug builds"
#endif

const auto kAborted = testing::KilledBySignal(SIGABRT);
constexpr char kReport[] = "broken invariant at .*mutex.cc:[0-9]+: .*rank order";

void LockBoth(Mutex* first, Mutex* second) {
  MutexLock outer(first);
  MutexLock inner(second);
}

TEST(LockRankDeathTest, DiesWithAReportWhenALowerRankIsTakenSecond) {
  Mutex arena(LockRank::kArena);
  Mutex driver(LockRank::kDriver);
  LockBoth(&arena, &driver);  // as it should be
  EXPECT_EXIT(LockBoth(&driver, &arena), kAborted, kReport);
}

TEST(LockRankDeathTest, DiesWhenTwoLocksOfOneRankAreHeld) {
  Mutex one(LockRank::kMagazine);
  Mutex other(LockRank::kMagazine);
  EXPECT_EXIT(LockBoth(&one, &other), kAborted, kReport);
}

TEST(LockRankDeathTest, ALockThatWasGivenBackCountsNoMore) {
  Mutex arena(LockRank::kArena);
  Mutex driver(LockRank::kDriver);
  for (int i = 0; i < 3; ++i) {
    { MutexLock lock(&driver); }
    LockBoth(&arena, &driver);
  }
}

TEST(CheckDeathTest, SaysWhichInvariantIsBrokenAndWhere) {
  EXPECT_EXIT(THIMBLE_CHECK(1 + 1 == 3, "I1: sums are wrong"), kAborted,
              "broken invariant at .*lock_rank_test.cc:[0-9]+: I1: sums are wrong .1 . 1 == 3.");
  THIMBLE_CHECK(1 + 1 == 2, "I1: sums are right");
}

}  // namespace
}  // namespace thimble
