// Growth: the figures that decide when memory is taken from the driver.
#include "allocator/arena/growth.h"

#include "gtest/gtest.h"

namespace thimble {
namespace {

TEST(Growth, SlackIsOneToTwoPerCentForWorkThatRepeats) {
  for (Bytes peak = kMiB; peak < 100 * kGiB; peak *= 3) {
    EXPECT_GE(AllowedSlack(peak, 0), peak / 100) << peak;
    EXPECT_LE(AllowedSlack(peak, 0), peak / 50) << peak;
  }
  EXPECT_EQ(AllowedSlack(0, 0), 0u);
}

TEST(Growth, SlackGrowsWithStitchingToThreePerCentAndNoFurther) {
  const Bytes peak = 100 * kGiB;
  EXPECT_EQ(AllowedSlack(peak, 255), kGiB);
  EXPECT_EQ(AllowedSlack(peak, 256), 2 * kGiB);
  EXPECT_EQ(AllowedSlack(peak, 512), 3 * kGiB);
  EXPECT_EQ(AllowedSlack(peak, ~std::uint64_t{0}), 3 * kGiB);
}

TEST(Growth, SlackNeverShrinksWhenThePeakGrows) {
  Bytes previous = 0;
  for (Bytes peak = 0; peak < 8 * kGiB; peak += 16 * kMiB) {
    EXPECT_GE(AllowedSlack(peak, 0), previous) << peak;
    previous = AllowedSlack(peak, 0);
  }
}

TEST(Growth, LargeChunksAreForMuchGrowthInTheFirstHalfOfTheLimit) {
  constexpr Bytes kSlot = 2 * kMiB;
  constexpr Bytes kLimit = 2048 * kSlot;
  EXPECT_EQ(InLargeChunks(255 * kSlot, 0, kLimit, kSlot), 0u);
  EXPECT_EQ(InLargeChunks(256 * kSlot, 0, kLimit, kSlot), 256 * kSlot);
  EXPECT_EQ(InLargeChunks(263 * kSlot, 0, kLimit, kSlot), 256 * kSlot) << "whole large chunks";
  EXPECT_EQ(InLargeChunks(kLimit, 0, kLimit, kSlot), kLimit / 2) << "all at once";
  EXPECT_EQ(InLargeChunks(512 * kSlot, 768 * kSlot, kLimit, kSlot), 256 * kSlot);
  EXPECT_EQ(InLargeChunks(512 * kSlot, 1024 * kSlot, kLimit, kSlot), 0u);
}

}  // namespace
}  // namespace thimble
