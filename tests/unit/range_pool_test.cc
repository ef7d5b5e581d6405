// RangePool: the lowest range that fits, and everything in one piece when all is given back.
#include "allocator/base/range_pool.h"

#include <vector>

#include "gtest/gtest.h"
#include "tests/workloads/random.h"

namespace thimble {
namespace {

TEST(RangePool, HandsOutTheLowestRangeThatFits) {
  RangePool pool(100);
  EXPECT_EQ(pool.Take(10), 0u);
  EXPECT_EQ(pool.Take(20), 10u);
  EXPECT_EQ(pool.Take(10), 30u);
  EXPECT_EQ(pool.taken_bytes(), 40u);
  pool.Give(0, 10);
  EXPECT_EQ(pool.Take(11), 40u);
  EXPECT_EQ(pool.Take(4), 0u);
}

TEST(RangePool, RefusesRangesThatDoNotFit) {
  RangePool pool(100);
  EXPECT_FALSE(pool.Take(101).has_value());
  EXPECT_EQ(pool.Take(100), 0u);
  EXPECT_FALSE(pool.Take(1).has_value());
  EXPECT_FALSE(RangePool(0).Take(1).has_value());
}

TEST(RangePool, GivenRangesJoinOnBothSides) {
  RangePool pool(30);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(pool.Take(10).has_value());
  pool.Give(0, 10);
  pool.Give(20, 10);
  EXPECT_FALSE(pool.Take(11).has_value());
  pool.Give(10, 10);
  EXPECT_EQ(pool.Take(30), 0u);
}

TEST(RangePool, ARangeMayComeBackInParts) {
  RangePool pool(30);
  ASSERT_EQ(pool.Take(30), 0u);
  pool.Give(10, 10);
  EXPECT_EQ(pool.Take(10), 10u);
  pool.Give(0, 10);
  pool.Give(10, 20);
  EXPECT_EQ(pool.Take(30), 0u);
}

TEST(RangePoolDeathTest, GivingBackTwiceIsNoticed) {
  RangePool pool(30);
  ASSERT_EQ(pool.Take(20), 0u);
  pool.Give(0, 10);
  EXPECT_DEATH(pool.Give(5, 10), "given back twice");
  EXPECT_DEATH(pool.Give(0, 10), "given back twice");
  EXPECT_DEATH(pool.Give(20, 20), "never taken");
}

TEST(RangePool, NeverOverlapsAndLosesNothing) {
  constexpr Bytes kCapacity = 500;
  RangePool pool(kCapacity);
  std::vector<bool> taken(kCapacity, false);
  std::vector<std::pair<Bytes, Bytes>> held;
  workloads::Random random(5);
  for (int round = 0; round < 50'000; ++round) {
    if (random.Index(2) == 0) {
      const Bytes bytes = 1 + random.Index(40);
      const auto begin = pool.Take(bytes);
      if (!begin) continue;
      for (Bytes at = *begin; at < *begin + bytes; ++at) {
        ASSERT_FALSE(taken[at]);
        taken[at] = true;
      }
      held.emplace_back(*begin, bytes);
    } else if (!held.empty()) {
      const std::size_t at = random.Index(held.size());
      const auto [begin, bytes] = held[at];
      for (Bytes byte = begin; byte < begin + bytes; ++byte) taken[byte] = false;
      pool.Give(begin, bytes);
      held[at] = held.back();
      held.pop_back();
    }
    if (round % 100 == 0) pool.CheckInvariants();
  }
  for (const auto& [begin, bytes] : held) pool.Give(begin, bytes);
  EXPECT_EQ(pool.Take(kCapacity), 0u);
}

}  // namespace
}  // namespace thimble
