// StepClock: what counts as a step, and how long it takes by a clock that the tests set.
#include "allocator/arena/step_clock.h"

#include "gtest/gtest.h"

namespace thimble {
namespace {

using std::chrono::milliseconds;

class StepClockTest : public testing::Test {
 protected:
  // A step of so many requests in so much time.
  void Step(int requests, milliseconds time) {
    ++step_;
    for (int i = 0; i < requests; ++i) EXPECT_EQ(clock_.Count(step_, Now), i == 0);
    now += time;
  }
  static StepClock::Clock::time_point Now() { return now; }

  static inline StepClock::Clock::time_point now;
  StepClock clock_;
  std::uint64_t step_ = 0;
};

TEST_F(StepClockTest, TheLastWholeStepCounts) {
  Step(100, milliseconds(50));
  Step(100, milliseconds(7));
  EXPECT_EQ(clock_.length().count(), 0) << "there was one, which may be anything";
  Step(95, milliseconds(9));
  EXPECT_EQ(clock_.length(), milliseconds(7));
  Step(1, milliseconds(1));
  EXPECT_EQ(clock_.length(), milliseconds(9));
}

TEST_F(StepClockTest, OpsThatPythonCallsAreNoSteps) {
  for (int i = 0; i < 10; ++i) Step(1, milliseconds(1));
  EXPECT_EQ(clock_.length().count(), 0);
  Step(100, milliseconds(50));
  EXPECT_EQ(clock_.length().count(), 0) << "the first that is larger is under way";
  Step(1, milliseconds(1));
  EXPECT_EQ(clock_.length().count(), 0) << "and has no other like it";
  Step(100, milliseconds(20));
  for (int i = 0; i < 3; ++i) Step(1, milliseconds(1));
  EXPECT_EQ(clock_.length(), milliseconds(20));
}

TEST_F(StepClockTest, TheEndOfAStepMayComeAfterTheNextBegins) {
  Step(20, milliseconds(3));
  Step(20, milliseconds(3));
  ++step_;
  EXPECT_TRUE(clock_.Count(step_, Now));
  EXPECT_FALSE(clock_.Count(step_ - 1, Now));
  EXPECT_FALSE(clock_.Count(step_, Now));
  EXPECT_EQ(clock_.length(), milliseconds(3));
}

TEST_F(StepClockTest, NothingIsKnownWithoutStepNumbers) {
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(clock_.Count(0, Now));
  EXPECT_EQ(clock_.length().count(), 0);
}

}  // namespace
}  // namespace thimble
