#include "allocator/offline/schedule/copy_engine.h"

#include "gtest/gtest.h"
#include "tests/workloads/random.h"

namespace thimble::schedule {
namespace {

TEST(SwapCopyEngine, TakesTheFirstAndTheLastTimeThatIsFree) {
  CopyEngine engine(100);
  engine.Reserve(10, 20);
  engine.Reserve(40, 10);
  EXPECT_EQ(engine.Earliest(0, 10, 100), 0);
  EXPECT_EQ(engine.Earliest(5, 10, 100), 30);
  EXPECT_EQ(engine.Earliest(5, 11, 100), 50);
  EXPECT_EQ(engine.Earliest(5, 11, 60), std::nullopt);
  EXPECT_EQ(engine.Latest(0, 10, 45), 30);
  EXPECT_EQ(engine.Latest(0, 11, 45), std::nullopt);
  EXPECT_EQ(engine.Latest(0, 10, 39), 0);
}

TEST(SwapCopyEngine, ACopyThatRunsIntoTheNextStepIsInTheWayThere) {
  CopyEngine engine(100);
  engine.Reserve(90, 30);
  EXPECT_EQ(engine.Earliest(0, 5, 100), 20);
  EXPECT_EQ(engine.Earliest(85, 10, 200), 120);
  EXPECT_EQ(engine.Latest(0, 10, 195), 180);
  EXPECT_EQ(engine.Latest(100, 10, 125), std::nullopt);
}

TEST(SwapCopyEngine, ATimeReservedInOneStepIsReservedInAll) {
  CopyEngine engine(100);
  engine.Reserve(250, 10);
  EXPECT_EQ(engine.Earliest(45, 10, 100), 60);
  EXPECT_EQ(engine.Earliest(145, 10, 200), 160);
}

TEST(SwapCopyEngine, ACopyAsLongAsTheStepFitsOnceAndALongerOneNever) {
  CopyEngine engine(100);
  EXPECT_EQ(engine.Earliest(30, 101, 1000), std::nullopt);
  EXPECT_EQ(engine.Latest(30, 101, 1000), std::nullopt);
  ASSERT_EQ(engine.Earliest(30, 100, 1000), 30);
  engine.Reserve(30, 100);
  EXPECT_EQ(engine.Earliest(0, 1, 1000), std::nullopt);
  EXPECT_EQ(engine.Latest(0, 1, 1000), std::nullopt);
}

// Against one bit per nanosecond.
TEST(SwapCopyEngine, AgreesWithABitmap) {
  workloads::Random random(3);
  for (int round = 0; round < 300; ++round) {
    const Ns period = static_cast<Ns>(5 + random.Index(40));
    CopyEngine engine(period);
    std::vector<bool> busy(period);
    const auto is_free = [&](Ns begin, Ns length) {
      for (Ns time = begin; time < begin + length; ++time) {
        if (busy[time % period]) return false;
      }
      return length <= period;
    };
    for (int copy = 0; copy < 12; ++copy) {
      const Ns from = static_cast<Ns>(random.Index(2 * period));
      const Ns until = from + static_cast<Ns>(random.Index(2 * period));
      const Ns length = static_cast<Ns>(1 + random.Index(12));
      std::optional<Ns> first;
      std::optional<Ns> last;
      for (Ns begin = from; begin + length <= until; ++begin) {
        if (!is_free(begin, length)) continue;
        if (!first) first = begin;
        last = begin;
      }
      ASSERT_EQ(engine.Earliest(from, length, until), first);
      ASSERT_EQ(engine.Latest(from, length, until), last);
      if (!first) continue;
      const Ns begin = random.Index(2) == 0 ? *first : *last;
      engine.Reserve(begin, length);
      for (Ns time = begin; time < begin + length; ++time) busy[time % period] = true;
    }
  }
}

}  // namespace
}  // namespace thimble::schedule
