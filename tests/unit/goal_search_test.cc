#include "allocator/swap/goal_search.h"

#include "gtest/gtest.h"

namespace thimble {
namespace {

constexpr std::uint64_t kFivePercent = 50000;
constexpr Bytes kLimit = 8 * kGiB;
constexpr Bytes kNeeded = 4 * kGiB;

// A program that waits a tenth of the time, or more, with less than `enough`.
class Program {
 public:
  explicit Program(Bytes enough) : enough_(enough) {}

  void Run(GoalSearch& search, int rounds) {
    for (int i = 0; i < rounds; ++i) {
      GoalSearch::Round round;
      round.elapsed_ns = 1000;
      round.waited_ns = goal_ < enough_ ? 100 : 10;
      round.reserved = std::min(goal_, kNeeded);
      goal_ = search.After(round);
    }
  }
  void set_enough(Bytes enough) { enough_ = enough; }
  Bytes goal() const { return goal_; }

 private:
  Bytes enough_;
  Bytes goal_ = kLimit;
};

TEST(GoalSearch, AsksForNothingWhileItLearns) {
  GoalSearch search(kFivePercent, kLimit);
  Program program(kGiB);
  program.Run(search, 2);
  EXPECT_EQ(program.goal(), kLimit);
}

TEST(GoalSearch, FindsTheLeastGoalThatSuffices) {
  for (const Bytes enough : {kMiB, kGiB, 3 * kGiB, kNeeded}) {
    GoalSearch search(kFivePercent, kLimit);
    Program program(enough);
    program.Run(search, 20);
    EXPECT_TRUE(search.is_found());
    EXPECT_GE(program.goal(), enough);
    EXPECT_LE(program.goal(), enough + kNeeded / 32);
  }
}

TEST(GoalSearch, SearchesAgainWhenTheGoalNoLongerSuffices) {
  GoalSearch search(kFivePercent, kLimit);
  Program program(kGiB);
  program.Run(search, 20);
  const Bytes found = program.goal();
  program.Run(search, 20);
  EXPECT_EQ(program.goal(), found) << "kept while it is enough";
  program.set_enough(5 * kGiB);
  program.Run(search, 30);
  EXPECT_TRUE(search.is_found());
  EXPECT_GE(program.goal(), 5 * kGiB);
  EXPECT_LE(program.goal(), 5 * kGiB + kLimit / 32);
}

}  // namespace
}  // namespace thimble
