#include "tests/bench/block_list.h"

#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace thimble::bench {
namespace {

TEST(BlockList, TakesTheSmallestThatFitsAndSplitsTheRestOff) {
  BlockList list;
  list.AddSegment(Address(1000), 100, BlockState::kFree);
  list.AddSegment(Address(5000), 60, BlockState::kFree);
  Block* block = list.Take(*list.BestFit(50), 50);
  EXPECT_EQ(block->address, Address(5000));
  EXPECT_EQ(block->bytes, 50u);
  EXPECT_EQ(list.Find(Address(5050))->bytes, 10u);
}

TEST(BlockList, GivenBlocksMergeWithBothNeighbours) {
  BlockList list;
  list.AddSegment(Address(0x1000), 300, BlockState::kFree);
  std::vector<Block*> blocks;
  for (int i = 0; i < 3; ++i) blocks.push_back(list.Take(*list.BestFit(100), 100));
  EXPECT_TRUE(list.free_blocks().empty());
  list.Give(blocks[0]);
  list.Give(blocks[2]);
  EXPECT_EQ(list.free_blocks().size(), 2u);
  EXPECT_EQ(list.Give(blocks[1])->bytes, 300u);
  EXPECT_EQ(list.free_blocks().size(), 1u);
}

TEST(BlockList, SegmentsThatTouchDoNotMerge) {
  BlockList list;
  Block* low = list.Take(list.AddSegment(Address(0x1000), 0x100, BlockState::kFree), 0x100);
  list.AddSegment(Address(0x1100), 0x100, BlockState::kFree);
  list.Give(low);
  EXPECT_EQ(list.free_blocks().size(), 2u);
}

TEST(BlockList, CarvingTheMiddleLeavesBothEndsAsTheyWere) {
  BlockList list;
  const Address base(0x1000);
  Block* block = list.AddSegment(base, 300, BlockState::kFree);
  Block* hole = list.Carve(block, base + 100, base + 200, BlockState::kUnmapped);
  EXPECT_EQ(hole->bytes, 100u);
  EXPECT_EQ(list.free_blocks().size(), 2u);
  EXPECT_EQ(list.unmapped_blocks().size(), 1u);
  EXPECT_EQ(list.Containing(base + 250)->address, base + 200);
}

// L1 to L3 after every one of many random operations.
TEST(BlockList, KeepsItsInvariantsUnderRandomCarving) {
  constexpr Bytes kBytes = 1 << 12;
  BlockList list;
  const Address base(0x10000);
  list.AddSegment(base, kBytes, BlockState::kFree);
  std::mt19937_64 random(7);
  for (int i = 0; i < 20000; ++i) {
    Block* block = list.Containing(base + random() % kBytes);
    const Address begin = block->address + random() % block->bytes;
    const Address end = begin + 1 + random() % (block->end() - begin);
    list.Carve(block, begin, end, static_cast<BlockState>(random() % 3));

    std::size_t free = 0;
    std::size_t unmapped = 0;
    Address at = base;
    for (const Block* b = list.Find(at); b != nullptr; b = b->next) {
      ASSERT_EQ(b->address, at);
      at = b->end();
      free += b->state == BlockState::kFree;
      unmapped += b->state == BlockState::kUnmapped;
      ASSERT_TRUE(b->next == nullptr || b->state == BlockState::kUsed ||
                  b->next->state != b->state);
    }
    ASSERT_EQ(at, base + kBytes);
    ASSERT_EQ(list.free_blocks().size(), free);
    ASSERT_EQ(list.unmapped_blocks().size(), unmapped);
  }
}

}  // namespace
}  // namespace thimble::bench
