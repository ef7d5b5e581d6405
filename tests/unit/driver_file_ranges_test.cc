// FileRanges: lowest first, nothing lost (F1, F2).
#include <map>
#include <random>
#include <vector>

#include "allocator/driver/file_ranges.h"
#include "gtest/gtest.h"

namespace thimble {
namespace {

TEST(FileRanges, RangesTakenOneAfterAnotherAreNeighbours) {
  FileRanges ranges;
  EXPECT_EQ(ranges.Take(10), 0u);
  EXPECT_EQ(ranges.Take(5), 10u);
  EXPECT_EQ(ranges.Take(10), 15u);
  EXPECT_EQ(ranges.taken_bytes(), 25u);
}

TEST(FileRanges, TheLowestRangeThatIsLargeEnoughIsTaken) {
  FileRanges ranges;
  for (int i = 0; i < 6; ++i) ranges.Take(10);
  ranges.Give(40, 10);
  ranges.Give(0, 10);
  ranges.Give(20, 10);
  ranges.CheckInvariants();
  EXPECT_EQ(ranges.Take(4), 0u);
  EXPECT_EQ(ranges.Take(7), 20u) << "the rest of the lowest is too small";
  EXPECT_EQ(ranges.Take(6), 4u);
  EXPECT_EQ(ranges.Take(11), 60u) << "no free range is large enough";
  ranges.CheckInvariants();
}

TEST(FileRanges, NeighboursThatAreGivenBackBecomeOne) {
  FileRanges ranges;
  for (int i = 0; i < 4; ++i) ranges.Take(10);
  ranges.Give(0, 10);
  ranges.Give(20, 10);
  ranges.Give(10, 10);
  ranges.CheckInvariants();
  EXPECT_EQ(ranges.Take(30), 0u);
}

TEST(FileRanges, TheEndShrinksBack) {
  FileRanges ranges;
  for (int i = 0; i < 3; ++i) ranges.Take(10);
  ranges.Give(10, 10);
  EXPECT_EQ(ranges.end(), 30u);
  ranges.Give(20, 10);
  EXPECT_EQ(ranges.end(), 10u);
  ranges.Give(0, 10);
  EXPECT_EQ(ranges.end(), 0u);
  ranges.CheckInvariants();
}

TEST(FileRangesDeathTest, GivingWhatIsNotTakenStopsTheProcess) {
  FileRanges ranges;
  ranges.Take(30);
  ranges.Give(10, 10);
  EXPECT_DEATH(ranges.Give(10, 10), "F2");
  EXPECT_DEATH(ranges.Give(15, 10), "F2");
  EXPECT_DEATH(ranges.Give(5, 10), "F2");
  EXPECT_DEATH(ranges.Give(25, 10), "F2");
}

TEST(FileRanges, RandomUseNeverOverlaps) {
  FileRanges ranges;
  std::map<Bytes, Bytes> taken;
  std::mt19937_64 random(3);
  for (int step = 0; step < 20'000; ++step) {
    if (taken.size() < 100 && random() % 2 == 0) {
      const Bytes bytes = 1 + random() % 20;
      const Bytes offset = ranges.Take(bytes);
      const auto next = taken.lower_bound(offset);
      ASSERT_TRUE(next == taken.end() || offset + bytes <= next->first);
      if (next != taken.begin()) {
        const auto previous = std::prev(next);
        ASSERT_LE(previous->first + previous->second, offset);
      }
      taken.emplace(offset, bytes);
    } else if (!taken.empty()) {
      const auto victim = std::next(taken.begin(), random() % taken.size());
      ranges.Give(victim->first, victim->second);
      taken.erase(victim);
    }
    ranges.CheckInvariants();
  }
}

}  // namespace
}  // namespace thimble
