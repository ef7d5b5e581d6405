#include "allocator/arena/turns.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace thimble {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr Turns::Clock::time_point kNever = Turns::Clock::time_point::max();

class TurnsTest : public testing::Test {
 protected:
  // Threads by number: only their names are needed.
  static Turns::Thread Name(int thread) {
    static const std::vector<Turns::Thread> names = [] {
      std::vector<std::thread> threads(3);
      std::vector<Turns::Thread> ids;
      for (std::thread& each : threads) {
        each = std::thread([] {});
        ids.push_back(each.get_id());
      }
      for (std::thread& each : threads) each.join();
      return ids;
    }();
    return names[static_cast<std::size_t>(thread)];
  }

  void Ask(int thread) { turns_.Ask(Name(thread), now_); }
  bool MayBegin(int thread) const { return turns_.MayBeginAt(Name(thread)) <= now_; }
  void Run(int thread, Turns::Clock::duration time) {
    turns_.Begin(Name(thread), now_);
    now_ += time;
    EXPECT_TRUE(turns_.End(Name(thread), now_));
  }

  Turns turns_;
  Turns::Clock::time_point now_ = Turns::Clock::time_point(std::chrono::hours(1));
};

// Three threads come back at once whenever an op of theirs has ended. Whatever their ops take,
// they begin as if each had run on a processor of its own.
TEST_F(TurnsTest, OpsBeginInTheOrderOfSideBySide) {
  std::mt19937 random(1);
  std::uniform_int_distribution<int> draw(1, 20'000);
  for (int round = 0; round < 100; ++round) {
    turns_.Clear();
    struct Op {
      microseconds begin, time;
      int thread;
    };
    std::vector<Op> expected;
    for (int thread = 0; thread < 3; ++thread) {
      microseconds begin(0);
      for (int i = 0; i < 30; ++i) {
        const int third = thread == 0 ? draw(random) : draw(random) / 50;
        const microseconds time(3 * third + (i == 0 ? thread : 3));  // no two begin at once
        expected.push_back({begin, time, thread});
        begin += time;
      }
      Ask(thread);
    }
    std::stable_sort(expected.begin(), expected.end(),
                     [](const Op& a, const Op& b) { return a.begin < b.begin; });
    std::vector<int> left(3, 30);
    for (const Op& op : expected) {
      // Who has no more ops is waited for, and then no longer.
      if (!MayBegin(op.thread)) now_ += Turns::kComesBack;
      ASSERT_TRUE(MayBegin(op.thread)) << "round " << round;
      Run(op.thread, op.time);
      if (--left[static_cast<std::size_t>(op.thread)] > 0) Ask(op.thread);
    }
  }
}

TEST_F(TurnsTest, AThreadThatReturnsSoonIsWaitedFor) {
  Ask(0);
  Ask(1);
  Run(0, milliseconds(1));
  Ask(0);
  Run(1, microseconds(100));  // its next op would begin before that of 0
  EXPECT_EQ(turns_.MayBeginAt(Name(0)), now_ + Turns::kComesBack);
  Ask(1);
  EXPECT_EQ(turns_.MayBeginAt(Name(0)), kNever);
  EXPECT_TRUE(MayBegin(1));
  Run(1, milliseconds(2));
  EXPECT_TRUE(MayBegin(0)) << "whoever would come later is not waited for";
}

// Thread 2 comes when an op has ended, most likely because it has: it begins there, behind 1.
TEST_F(TurnsTest, AThreadThatWasAwayBeginsWhereTheLastOpEnded) {
  Ask(0);
  Ask(1);
  Run(0, milliseconds(1));
  Ask(2);
  EXPECT_TRUE(MayBegin(1));
  Run(1, milliseconds(2));
  EXPECT_TRUE(MayBegin(2));
  Run(2, milliseconds(5));
  now_ += 2 * Turns::kComesBack;
  Ask(1);
  Ask(0);
  EXPECT_TRUE(MayBegin(1)) << "both were away: first come, first served";
}

TEST_F(TurnsTest, WaitingForMemoryTakesNoTime) {
  Ask(0);
  Ask(1);
  turns_.Begin(Name(0), now_);
  now_ += milliseconds(10);
  turns_.Exclude(Name(1), milliseconds(5));  // not its turn
  turns_.Exclude(Name(0), milliseconds(9));
  EXPECT_TRUE(turns_.End(Name(0), now_));
  Ask(0);
  Run(1, milliseconds(2));
  Ask(1);
  EXPECT_TRUE(MayBegin(0)) << "its op took 1 ms";
}

TEST_F(TurnsTest, ALongOpDoesNotHoldUpItsThread) {
  Ask(0);
  Ask(1);
  Run(0, std::chrono::seconds(10));
  Ask(0);
  Run(1, Turns::kLongest + milliseconds(1));
  Ask(1);
  EXPECT_TRUE(MayBegin(0));
}

TEST_F(TurnsTest, OpsMayBeNestedAndWaitersMayGiveUp) {
  Ask(0);
  turns_.Begin(Name(0), now_);
  EXPECT_TRUE(turns_.IsTurnOf(Name(0)));
  turns_.BeginInner();
  Ask(1);
  Ask(2);
  EXPECT_FALSE(turns_.End(Name(1), now_)) << "it is not its turn";
  EXPECT_FALSE(turns_.End(Name(0), now_)) << "of the inner op";
  EXPECT_EQ(turns_.MayBeginAt(Name(1)), kNever);
  EXPECT_TRUE(turns_.End(Name(0), now_));
  EXPECT_FALSE(turns_.IsTurnOf(Name(0)));
  EXPECT_TRUE(MayBegin(1));
  EXPECT_EQ(turns_.MayBeginAt(Name(2)), kNever);
  turns_.GiveUp(Name(1));
  EXPECT_TRUE(MayBegin(2));
}

TEST_F(TurnsTest, ThreadsThatStayAwayAreForgotten) {
  Ask(0);
  Ask(1);
  Run(0, milliseconds(90));
  now_ += Turns::kLongest + milliseconds(1);
  Run(1, milliseconds(1));
  Ask(0);
  Ask(1);
  EXPECT_TRUE(MayBegin(0)) << "both begin where 1 ended";
}

}  // namespace
}  // namespace thimble
