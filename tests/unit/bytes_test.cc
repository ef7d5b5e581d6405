// Sizes: rounding that detects overflow, and conversion to and from text.
#include "allocator/base/bytes.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/device.h"

namespace thimble {
namespace {

constexpr Bytes kMax = ~Bytes{0};

TEST(Bytes, RoundingGoesToTheNearestMultiple) {
  EXPECT_EQ(RoundUp(0, 256), 0u);
  EXPECT_EQ(RoundUp(1, 256), 256u);
  EXPECT_EQ(RoundUp(256, 256), 256u);
  EXPECT_EQ(RoundUp(257, 256), 512u);
  EXPECT_EQ(RoundDown(511, 256), 256u);
  EXPECT_EQ(RoundUp(10, 3), 12u);
}

TEST(Bytes, OverflowIsNothing) {
  EXPECT_EQ(CheckedAdd(kMax - 1, 1), kMax);
  EXPECT_EQ(CheckedAdd(kMax, 1), std::nullopt);
  EXPECT_EQ(CheckedRoundUp(kMax - 255, 256), kMax - 255);
  EXPECT_EQ(CheckedRoundUp(kMax - 254, 256), std::nullopt);
  EXPECT_EQ(CheckedRoundUp(kMax, 256), std::nullopt);
}

TEST(Bytes, OnlyPowersOfTwoAreOnes) {
  EXPECT_FALSE(IsPowerOfTwo(0));
  EXPECT_FALSE(IsPowerOfTwo(3));
  EXPECT_FALSE(IsPowerOfTwo(kMax));
  for (int log = 0; log < 64; ++log) EXPECT_TRUE(IsPowerOfTwo(Bytes{1} << log));
}

TEST(Bytes, FormatNamesTheLargestUnit) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1024), "1.00 KiB");
  EXPECT_EQ(FormatBytes(3 * kMiB / 2), "1.50 MiB");
  EXPECT_EQ(FormatBytes(80 * kGiB), "80.00 GiB");
  EXPECT_EQ(FormatBytes(kMax), "16777216.00 TiB");
}

struct Text {
  const char* text;
  Bytes bytes;
};
class ReadableSize : public testing::TestWithParam<Text> {};
INSTANTIATE_TEST_SUITE_P(All, ReadableSize,
                         testing::Values(Text{"0", 0}, Text{"4096", 4096}, Text{"4096B", 4096},
                                         Text{"1K", kKiB}, Text{"512KiB", 512 * kKiB},
                                         Text{"64M", 64 * kMiB}, Text{"8GiB", 8 * kGiB},
                                         Text{"1.5GiB", 3 * kGiB / 2}, Text{"0.5T", kTiB / 2},
                                         Text{"9223372036854775808", Bytes{1} << 63},
                                         Text{"8388608TiB", Bytes{1} << 63}));
TEST_P(ReadableSize, IsRead) {
  const auto bytes = ParseBytes(GetParam().text);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(*bytes, GetParam().bytes);
}

class UnreadableSize : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, UnreadableSize,
                         testing::Values("", "B", "K", "KiB", "-1", "-1K", "1.5", "1.5B", "1,5G",
                                         "1 2", "1KB", "1kib", "0x10", "1e400G", "nanG", "infG",
                                         "9223372036854775809", "8388609TiB",
                                         "18446744073709551616", "8388608.1TiB", "GiB1", "1GiBs"));
TEST_P(UnreadableSize, IsQuotedInTheError) {
  const auto bytes = ParseBytes(GetParam());
  ASSERT_FALSE(bytes.ok()) << *bytes;
  EXPECT_EQ(bytes.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(bytes.status()), testing::HasSubstr("'" + std::string(GetParam()) + "'"));
}

}  // namespace
}  // namespace thimble
