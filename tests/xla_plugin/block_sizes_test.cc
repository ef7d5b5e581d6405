// Which addresses belong to an arena, and the requested sizes of its blocks.
#include "xla_plugin/driver_front/block_sizes.h"

#include "gtest/gtest.h"

namespace thimble::xla {
namespace {

constexpr thimble_addresses kAddresses = {sizeof(thimble_addresses), 0x100000, 0x10000, 0x400000,
                                          0x20000};

TEST(BlockSizes, BothRangesAreTheArenas) {
  const auto sizes = BlockSizes::Create(kAddresses);
  for (const CUdeviceptr inside : {0x100000, 0x10ffff, 0x400000, 0x41ffff}) {
    EXPECT_TRUE(sizes->Contains(inside)) << inside;
  }
  for (const CUdeviceptr outside : {0x0, 0xfffff, 0x110000, 0x3fffff, 0x420000}) {
    EXPECT_FALSE(sizes->Contains(outside)) << outside;
  }
}

TEST(BlockSizes, ASizeIsWhatWasAskedForLast) {
  const auto sizes = BlockSizes::Create(kAddresses);
  for (const CUdeviceptr block : {0x100000, 0x10ff00, 0x400000, 0x41ff00}) {
    EXPECT_EQ(sizes->Get(block, 512), 512u) << "nothing was said";
    for (const std::size_t bytes : {1, 255, 256, 257, 511, 512, 4095, 1, 256}) {
      sizes->Set(block, bytes);
      EXPECT_EQ(sizes->Get(block, (bytes + 255) / 256 * 256), bytes);
    }
  }
}

TEST(BlockSizes, BlocksDoNotShareEntries) {
  const auto sizes = BlockSizes::Create(kAddresses);
  const CUdeviceptr blocks[] = {0x100000, 0x100100, 0x10ff00, 0x400000, 0x400100};
  std::size_t bytes = 1;
  for (const CUdeviceptr block : blocks) sizes->Set(block, bytes++);
  bytes = 1;
  for (const CUdeviceptr block : blocks) EXPECT_EQ(sizes->Get(block, 256), bytes++);
}

TEST(BlockSizes, TheRowOfALargeDeviceCostsNoMemoryUntilItIsUsed) {
  constexpr std::uint64_t kTiB = std::uint64_t{1} << 40;
  const auto sizes =
      BlockSizes::Create({sizeof(thimble_addresses), kTiB, kTiB, 2 * kTiB, 4 * kTiB});
  ASSERT_NE(sizes, nullptr);
  sizes->Set(6 * kTiB - 256, 100);
  EXPECT_EQ(sizes->Get(6 * kTiB - 256, 256), 100u);
}

}  // namespace
}  // namespace thimble::xla
