// AddressIndex: for every slot, the first block that begins in it.
#include "allocator/stitch/address_index.h"

#include <set>

#include "gtest/gtest.h"
#include "tests/workloads/random.h"

namespace thimble {
namespace {

constexpr Bytes kSlot = 4 * kKiB;
constexpr Bytes kUnits = 64 * kSlot / kUnit;  // of the range the tests use

// Blocks are named by the unit they begin at; neighbours are linked as in the heap.
class AddressIndexTest : public testing::Test {
 protected:
  AddressIndexTest() : index_(kSlot), blocks_(kUnits) {
    for (Bytes unit = 0; unit < kUnits; ++unit) blocks_[unit].offset = unit * kUnit;
  }

  void Add(BlockId id) {
    const auto next = begins_.upper_bound(id);
    blocks_[id].next = next == begins_.end() ? kNoBlock : *next;
    if (next != begins_.begin()) blocks_[*std::prev(next)].next = id;
    begins_.insert(id);
    index_.Add(blocks_, id);
  }
  void Remove(BlockId id) {
    index_.Remove(blocks_, id);
    const auto at = begins_.find(id);
    if (at != begins_.begin()) blocks_[*std::prev(at)].next = blocks_[id].next;
    begins_.erase(at);
  }
  BlockId Expected(Bytes offset) const {
    const auto first = begins_.lower_bound(static_cast<BlockId>(offset / kUnit));
    return first == begins_.end() ? kNoBlock : *first;
  }

  AddressIndex index_;
  std::vector<Block> blocks_;
  std::set<BlockId> begins_;
};

TEST_F(AddressIndexTest, AnEmptyIndexFindsNothing) {
  EXPECT_EQ(index_.FirstFrom(0), kNoBlock);
  EXPECT_EQ(index_.FirstFrom(1 << 30), kNoBlock);
}

TEST_F(AddressIndexTest, TheLowestBlockOfASlotWins) {
  Add(9);
  Add(3);
  Add(5);
  EXPECT_EQ(index_.FirstFrom(0), 3u);
  Remove(3);
  EXPECT_EQ(index_.FirstFrom(0), 5u);
}

TEST_F(AddressIndexTest, SlotsWithoutABlockAreSkipped) {
  const BlockId far = 40 * kSlot / kUnit;
  Add(far);
  EXPECT_EQ(index_.FirstFrom(0), far);
  EXPECT_EQ(index_.FirstFrom(40 * kSlot), far);
  EXPECT_EQ(index_.FirstFrom(41 * kSlot), kNoBlock);
}

TEST_F(AddressIndexTest, AgreesWithASortedSet) {
  workloads::Random random(3);
  for (int round = 0; round < 50'000; ++round) {
    const auto id = static_cast<BlockId>(random.Index(kUnits));
    if (begins_.count(id) == 0) {
      Add(id);
    } else {
      Remove(id);
    }
    const Bytes offset = random.Index(64) * kSlot;
    ASSERT_EQ(index_.FirstFrom(offset), Expected(offset)) << "round " << round;
  }
}

}  // namespace
}  // namespace thimble
