// Growth: the figures that decide when memory is taken from the driver.
#include "allocator/arena/growth.h"

#include "gtest/gtest.h"

namespace thimble {
namespace {

TEST(Growth, SlackIsOneToTwoPerCent) {
  for (Bytes peak = kMiB; peak < 100 * kGiB; peak *= 3) {
    EXPECT_GE(AllowedSlack(peak), peak / 100) << peak;
    EXPECT_LE(AllowedSlack(peak), peak / 50) << peak;
  }
  EXPECT_EQ(AllowedSlack(0), 0u);
}

TEST(Growth, SlackNeverShrinksWhenThePeakGrows) {
  Bytes previous = 0;
  for (Bytes peak = 0; peak < 8 * kGiB; peak += 16 * kMiB) {
    EXPECT_GE(AllowedSlack(peak), previous) << peak;
    previous = AllowedSlack(peak);
  }
}

TEST(Growth, NearTheLimitMeansTheRestIsLessThanTheRequestOrAThirtySecond) {
  EXPECT_FALSE(IsNearLimit(/*reserved=*/0, /*limit=*/64 * kMiB, /*request=*/kMiB));
  EXPECT_TRUE(IsNearLimit(63 * kMiB, 64 * kMiB, kMiB));
  EXPECT_TRUE(IsNearLimit(0, 64 * kMiB, 65 * kMiB));
  EXPECT_TRUE(IsNearLimit(65 * kMiB, 64 * kMiB, 0)) << "more than the limit, by spare chunks";
}

TEST(Growth, LargeChunksAreForMuchGrowthFarFromTheLimit) {
  constexpr Bytes kSlot = 2 * kMiB;
  EXPECT_TRUE(UseLargeChunks(32 * kSlot, 0, 64 * kSlot, kSlot));
  EXPECT_FALSE(UseLargeChunks(31 * kSlot, 0, 64 * kSlot, kSlot));
  EXPECT_FALSE(UseLargeChunks(32 * kSlot, kSlot, 64 * kSlot, kSlot));
}

}  // namespace
}  // namespace thimble
