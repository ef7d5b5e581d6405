// Which addresses are an arena's: whole blocks by their address, any byte of them by looking.
#include "xla_plugin/driver_front/block_table.h"

#include <atomic>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace thimble::xla {
namespace {

TEST(BlockTable, FindsTheBlockThatAnAddressPointsInto) {
  BlockTable table;
  table.Add({0x1000, 0x100, nullptr});
  table.Add({0x2000, 1, nullptr});
  for (const CUdeviceptr inside : {0x1000, 0x1001, 0x10ff}) {
    ASSERT_TRUE(table.Find(inside).has_value()) << inside;
    EXPECT_EQ(table.Find(inside)->address, 0x1000u);
    EXPECT_EQ(table.Find(inside)->bytes, 0x100u);
  }
  EXPECT_TRUE(table.Find(0x2000).has_value());
  for (const CUdeviceptr outside : {0x0, 0xfff, 0x1100, 0x1fff, 0x2001}) {
    EXPECT_FALSE(table.Find(outside).has_value()) << outside;
  }
}

TEST(BlockTable, ABlockIsTakenOnceAndByItsOwnAddress) {
  BlockTable table;
  table.Add({0x1000, 0x100, nullptr});
  EXPECT_FALSE(table.Take(0x1001).has_value());
  EXPECT_TRUE(table.Take(0x1000).has_value());
  EXPECT_FALSE(table.Take(0x1000).has_value());
  EXPECT_FALSE(table.Find(0x1000).has_value());
}

TEST(BlockTable, OfTwoThreadsThatFreeOneGetsTheBlock) {
  constexpr int kBlocks = 2000;
  BlockTable table;
  for (CUdeviceptr i = 1; i <= kBlocks; ++i) table.Add({i * 256, 256, nullptr});
  std::atomic<int> taken{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (CUdeviceptr i = 1; i <= kBlocks; ++i) {
        table.Find(i * 256 + 7);
        if (table.Take(i * 256).has_value()) ++taken;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taken, kBlocks);
}

}  // namespace
}  // namespace thimble::xla
