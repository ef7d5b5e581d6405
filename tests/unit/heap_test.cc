// Heap: every byte has one owner; free neighbours are one block; streams do not mix.
#include "allocator/stitch/heap.h"

#include "gtest/gtest.h"
#include "tests/workloads/random.h"

namespace thimble {
namespace {

constexpr Bytes kSlab = 16 * kKiB;
constexpr StreamTag kOne = 1;
constexpr StreamTag kTwo = 2;

class HeapTest : public testing::Test {
 protected:
  HeapTest() : heap_(kSlab) {}
  ~HeapTest() override { heap_.CheckInvariants(); }

  // The first `bytes` of a fit; fails the test if there is none.
  BlockId Take(Bytes bytes, StreamTag tag = kCleanTag, Pool pool = Pool::kLarge) {
    const BlockId fit = heap_.FindFit(pool, tag, bytes);
    if (fit == kNoBlock) {
      ADD_FAILURE() << "no " << bytes << " bytes for tag " << int{tag};
      return fit;
    }
    const Bytes begin = heap_.block(fit).offset;
    return heap_.Take(fit, {begin, begin + bytes});
  }
  bool Fits(Bytes bytes, StreamTag tag) const {
    return heap_.FindFit(Pool::kLarge, tag, bytes) != kNoBlock;
  }
  int Blocks() const {
    int count = 0;
    for (BlockId id = heap_.first(); id != kNoBlock; id = heap_.block(id).next) ++count;
    return count;
  }

  Heap heap_;
};

TEST_F(HeapTest, AppendedMemoryIsOneFreeBlock) {
  heap_.Append(kSlab, kCleanTag);
  heap_.Append(3 * kSlab, kCleanTag);
  EXPECT_EQ(heap_.end(), 4 * kSlab);
  EXPECT_EQ(Blocks(), 1);
  EXPECT_EQ(heap_.LargestFree(), 4 * kSlab);
}

TEST_F(HeapTest, TakingSplitsExactlyOnBothSides) {
  heap_.Append(kSlab, kCleanTag);
  const BlockId used = heap_.Take(heap_.first(), {kUnit, 3 * kUnit});
  EXPECT_EQ(heap_.block(used).offset, kUnit);
  EXPECT_EQ(heap_.block(used).bytes, 2 * kUnit);
  EXPECT_EQ(Blocks(), 3);
  EXPECT_EQ(heap_.used_bytes(), 2 * kUnit);
  EXPECT_EQ(heap_.free_bytes(Pool::kLarge), kSlab - 2 * kUnit);
}

TEST_F(HeapTest, APlaceIsTakenOnlyIfAllOfItIsFree) {
  heap_.Append(kSlab, kCleanTag);
  heap_.Take(heap_.first(), {4 * kUnit, 6 * kUnit});
  EXPECT_EQ(heap_.TakeAt({3 * kUnit, 5 * kUnit}, kOne), kNoBlock);
  EXPECT_EQ(heap_.TakeAt({5 * kUnit, 7 * kUnit}, kOne), kNoBlock);
  EXPECT_EQ(heap_.TakeAt({2 * kUnit, 8 * kUnit}, kOne), kNoBlock);
  EXPECT_EQ(heap_.TakeAt({kSlab - kUnit, kSlab + kUnit}, kOne), kNoBlock) << "beyond the end";
  EXPECT_EQ(Blocks(), 3) << "nothing changed";
  const BlockId taken = heap_.TakeAt({6 * kUnit, 8 * kUnit}, kOne);
  ASSERT_NE(taken, kNoBlock);
  EXPECT_EQ(heap_.block(taken).offset, 6 * kUnit);
  EXPECT_EQ(heap_.used_bytes(), 4 * kUnit);
}

TEST_F(HeapTest, APlaceMaySpanWhatIsCleanAndWhatTheStreamFreed) {
  heap_.Append(kSlab, kCleanTag);
  const BlockId a = Take(2 * kUnit);
  const BlockId b = Take(2 * kUnit);
  const BlockId c = Take(2 * kUnit);
  heap_.Release(a, kOne, Epoch(1));
  heap_.Release(c, kOne, Epoch(2));
  heap_.Clean(kOne, Epoch(1));
  heap_.Release(b, kTwo, Epoch(1));
  EXPECT_EQ(heap_.TakeAt({0, 3 * kUnit}, kOne), kNoBlock) << "another stream's";
  heap_.Clean(kTwo, Epoch(1));
  EXPECT_GE(Blocks(), 2) << "clean memory beside the stream's own";
  const BlockId taken = heap_.TakeAt({kUnit, 5 * kUnit}, kOne);
  ASSERT_NE(taken, kNoBlock);
  EXPECT_EQ(heap_.block(taken).bytes, 4 * kUnit);
  heap_.CheckInvariants();
  EXPECT_FALSE(Fits(kUnit, kTwo)) << "what was joined waits for its stream";
  heap_.Clean(kOne, Epoch(2));
  EXPECT_TRUE(Fits(kUnit, kTwo));
}

TEST_F(HeapTest, HeldMemoryHasNoOwnerUntilAllOfItIsReleased) {
  heap_.Append(kSlab, kCleanTag);
  EXPECT_TRUE(heap_.Hold({2 * kUnit, 4 * kUnit}, kOne));
  EXPECT_TRUE(heap_.Hold({6 * kUnit, 8 * kUnit}, kOne));
  EXPECT_FALSE(heap_.Hold({3 * kUnit, 5 * kUnit}, kOne)) << "held already";
  EXPECT_EQ(heap_.TakeAt({3 * kUnit, 4 * kUnit}, kOne), kNoBlock);
  EXPECT_TRUE(heap_.Hold({4 * kUnit, 6 * kUnit}, kOne));
  EXPECT_EQ(Blocks(), 3) << "neighbours are one block";
  EXPECT_EQ(heap_.held_bytes(), 6 * kUnit);
  EXPECT_EQ(heap_.used_bytes(), 0u);
  heap_.CheckInvariants();
  heap_.ReleaseHeld(kOne, Epoch(1));
  EXPECT_EQ(heap_.held_bytes(), 0u);
  EXPECT_EQ(heap_.free_bytes(), kSlab);
  heap_.CheckInvariants();
  EXPECT_FALSE(Fits(kSlab, kTwo)) << "it waits for its stream";
  heap_.Clean(kOne, Epoch(1));
  EXPECT_TRUE(Fits(kSlab, kTwo));
}

TEST_F(HeapTest, AFreedBlockMergesWithBothNeighbours) {
  heap_.Append(kSlab, kCleanTag);
  const BlockId a = Take(kUnit);
  const BlockId b = Take(kUnit);
  const BlockId c = Take(kUnit);
  heap_.Release(a, kCleanTag, Epoch(0));
  heap_.Release(c, kCleanTag, Epoch(0));
  EXPECT_EQ(Blocks(), 3);
  heap_.Release(b, kCleanTag, Epoch(0));
  EXPECT_EQ(Blocks(), 1);
}

TEST_F(HeapTest, MemoryThatAStreamFreedIsItsOwnUntilCleaned) {
  heap_.Append(kSlab, kCleanTag);
  heap_.Release(Take(kSlab, kOne), kOne, Epoch(5));
  EXPECT_TRUE(Fits(kSlab, kOne));
  EXPECT_FALSE(Fits(kUnit, kTwo));
  EXPECT_TRUE(heap_.HasTagged(kOne));
  heap_.Clean(kOne, Epoch(4));
  EXPECT_FALSE(Fits(kUnit, kTwo));
  heap_.Clean(kOne, Epoch(5));
  EXPECT_TRUE(Fits(kSlab, kTwo));
  EXPECT_FALSE(heap_.HasTagged(kOne));
}

TEST_F(HeapTest, BlocksOfTwoStreamsStayApart) {
  heap_.Append(2 * kSlab, kCleanTag);
  const BlockId a = Take(kSlab);
  const BlockId b = Take(kSlab);
  heap_.Release(a, kOne, Epoch(1));
  heap_.Release(b, kTwo, Epoch(1));
  EXPECT_EQ(Blocks(), 2);
  heap_.Clean(kOne, Epoch(1));
  heap_.Clean(kTwo, Epoch(1));
  EXPECT_EQ(Blocks(), 1);
}

TEST_F(HeapTest, AMergedBlockWaitsForItsLastFree) {
  heap_.Append(2 * kSlab, kCleanTag);
  for (const std::uint32_t first : {3U, 7U}) {
    const BlockId a = Take(kSlab);
    const BlockId b = Take(kSlab);
    heap_.Release(a, kOne, Epoch(first));
    heap_.Release(b, kOne, Epoch(10 - first));
    heap_.Clean(kOne, Epoch(3));
    EXPECT_FALSE(Fits(kUnit, kTwo)) << "part of this block was freed in epoch 7";
    heap_.Clean(kOne, Epoch(7));
  }
}

// Found by the model test: the clean block in the middle takes the tag, and then has a neighbour
// with the same tag on its other side.
TEST_F(HeapTest, MergingGoesOnAfterACleanBlockTookTheTag) {
  heap_.Append(3 * kSlab, kCleanTag);
  const BlockId a = Take(kSlab);
  const BlockId b = Take(kSlab);
  const BlockId c = Take(kSlab);
  heap_.Release(b, kTwo, Epoch(1));
  heap_.Release(c, kOne, Epoch(1));
  heap_.Clean(kTwo, Epoch(1));  // b is clean now, between a in use and c of stream 1
  ASSERT_EQ(Blocks(), 3);
  heap_.Release(a, kOne, Epoch(1));
  EXPECT_EQ(Blocks(), 1);
}

TEST_F(HeapTest, NewMemoryJoinsOnlyWhatItsStreamFreed) {
  heap_.Append(kSlab, kCleanTag);
  heap_.Release(Take(kSlab, kOne), kOne, Epoch(1));
  heap_.Append(kSlab, kTwo);
  EXPECT_TRUE(Fits(kSlab, kTwo)) << "new memory went to a stream that did not ask for it";
  heap_.Release(Take(kSlab, kTwo), kTwo, Epoch(1));
  heap_.Append(kSlab, kTwo);
  EXPECT_TRUE(Fits(2 * kSlab, kTwo));
}

TEST_F(HeapTest, ASlabIsForTheStreamThatAskedForIt) {
  heap_.Append(3 * kSlab, kCleanTag);
  ASSERT_TRUE(heap_.RefillSmall(kOne));
  const BlockId small = Take(kUnit, kOne, Pool::kSmall);
  heap_.Release(small, kOne, Epoch(1));
  ASSERT_TRUE(heap_.RefillSmall(kTwo));
  EXPECT_NE(heap_.FindFit(Pool::kSmall, kTwo, kUnit), kNoBlock);
}

TEST_F(HeapTest, SmallBlocksComeFromSlabsOfTheirOwn) {
  heap_.Append(4 * kSlab, kCleanTag);
  ASSERT_TRUE(heap_.RefillSmall(kCleanTag));
  EXPECT_EQ(heap_.free_bytes(Pool::kSmall), kSlab);
  const BlockId small = Take(kUnit, kCleanTag, Pool::kSmall);
  EXPECT_EQ(heap_.LargestFree(), 3 * kSlab);
  heap_.Release(small, kCleanTag, Epoch(0));
  EXPECT_EQ(heap_.free_bytes(Pool::kSmall), kSlab) << "one empty slab is kept";
  heap_.DrainSmall(kCleanTag);
  EXPECT_EQ(heap_.free_bytes(Pool::kLarge), 4 * kSlab);
  EXPECT_EQ(Blocks(), 1);
}

TEST_F(HeapTest, OnlyOneEmptySlabIsKept) {
  heap_.Append(4 * kSlab, kCleanTag);
  std::vector<BlockId> blocks;
  for (int slab = 0; slab < 3; ++slab) {
    ASSERT_TRUE(heap_.RefillSmall(kCleanTag));
    blocks.push_back(Take(kSlab, kCleanTag, Pool::kSmall));
  }
  for (const BlockId id : blocks) heap_.Release(id, kCleanTag, Epoch(0));
  EXPECT_EQ(heap_.free_bytes(Pool::kSmall), kSlab);
}

TEST_F(HeapTest, AllEmptySlabsAreKeptOnRequest) {
  heap_.Append(4 * kSlab, kCleanTag);
  heap_.KeepSlabs();
  std::vector<BlockId> blocks;
  for (int slab = 0; slab < 3; ++slab) {
    ASSERT_TRUE(heap_.RefillSmall(kCleanTag));
    blocks.push_back(Take(kSlab, kCleanTag, Pool::kSmall));
  }
  for (const BlockId id : blocks) heap_.Release(id, kCleanTag, Epoch(0));
  EXPECT_EQ(heap_.free_bytes(Pool::kSmall), 3 * kSlab);
  heap_.DrainSmall(kCleanTag);
  EXPECT_EQ(heap_.free_bytes(Pool::kSmall), 0u);
}

TEST_F(HeapTest, LongLivedSlabsAreTheHighestAndJoin) {
  heap_.Append(8 * kSlab, kCleanTag);
  const BlockId first = heap_.RefillResident(kSlab + kUnit, kCleanTag);
  ASSERT_NE(first, kNoBlock);
  EXPECT_EQ(heap_.block(first).offset, 6 * kSlab);
  heap_.Take(first, {7 * kSlab - kUnit, 8 * kSlab});
  const BlockId second = heap_.RefillResident(kSlab + kUnit, kCleanTag);
  ASSERT_NE(second, kNoBlock);
  EXPECT_EQ(heap_.block(second).offset, 5 * kSlab) << "one slab and the rest of the first two";
  EXPECT_EQ(heap_.EndOf(second), 7 * kSlab - kUnit);
  EXPECT_EQ(heap_.RefillResident(7 * kSlab, kCleanTag), kNoBlock);
}

TEST_F(HeapTest, EmptyLongLivedSlabsReturnAtOnce) {
  heap_.Append(8 * kSlab, kCleanTag);
  const BlockId free = heap_.RefillResident(3 * kSlab, kCleanTag);
  const BlockId used = heap_.Take(free, {5 * kSlab, 8 * kSlab});
  EXPECT_EQ(heap_.LargestFree(), 5 * kSlab);
  heap_.Release(used, kOne, Epoch(1));
  EXPECT_EQ(heap_.free_bytes(Pool::kLarge), 8 * kSlab);
}

TEST_F(HeapTest, WithoutAWholeSlabThereIsNoRefill) {
  heap_.Append(2 * kSlab, kCleanTag);
  heap_.Take(heap_.first(), {kSlab / 2, kSlab + kSlab / 2});
  EXPECT_FALSE(heap_.RefillSmall(kCleanTag));
}

TEST_F(HeapTest, VacantPlacesAreNoMemoryUntilRefilled) {
  heap_.Append(4 * kSlab, kCleanTag);
  heap_.Vacate({kSlab, 2 * kSlab});
  heap_.Vacate({2 * kSlab, 3 * kSlab});
  EXPECT_EQ(heap_.vacant_bytes(), 2 * kSlab);
  EXPECT_EQ(heap_.LargestFree(), kSlab);
  EXPECT_EQ(Blocks(), 3) << "neighbouring vacant places are one";
  EXPECT_EQ(heap_.block(heap_.FirstVacant()).offset, kSlab);
  heap_.Refill({kSlab, 2 * kSlab}, kCleanTag);
  EXPECT_EQ(heap_.LargestFree(), 2 * kSlab);
  heap_.Refill({2 * kSlab, 3 * kSlab}, kCleanTag);
  EXPECT_EQ(heap_.FirstVacant(), kNoBlock);
  EXPECT_EQ(Blocks(), 1);
}

TEST_F(HeapTest, TheMiddleOfAVacantPlaceCanBeRefilled) {
  heap_.Append(3 * kSlab, kCleanTag);
  heap_.Vacate({0, 3 * kSlab});
  heap_.Refill({kSlab, 2 * kSlab}, kCleanTag);
  EXPECT_EQ(Blocks(), 3);
  EXPECT_EQ(heap_.vacant_bytes(), 2 * kSlab);
}

TEST_F(HeapTest, EveryByteBelongsToTheBlockThatCoversIt) {
  heap_.Append(4 * kSlab, kCleanTag);
  workloads::Random random(2);
  std::vector<BlockId> used;
  for (int round = 0; round < 3000; ++round) {
    const Bytes bytes = RoundUp(random.LogUniform(1, kSlab), kUnit);
    const auto tag = static_cast<StreamTag>(1 + random.Index(3));
    const BlockId fit = heap_.FindFit(Pool::kLarge, tag, bytes);
    if (fit != kNoBlock && random.Index(2) == 0) {
      const Bytes begin = heap_.block(fit).offset;
      used.push_back(heap_.Take(fit, {begin, begin + bytes}));
    } else if (!used.empty()) {
      const std::size_t at = random.Index(used.size());
      heap_.Release(used[at], tag, Epoch(static_cast<std::uint32_t>(round)));
      used[at] = used.back();
      used.pop_back();
    }
    if (random.Index(50) == 0) heap_.Clean(tag, Epoch(static_cast<std::uint32_t>(round - 20)));
    heap_.CheckInvariants();
    const Bytes offset = random.Index(heap_.end());
    const BlockId at = heap_.At(offset);
    ASSERT_LE(heap_.block(at).offset, offset);
    ASSERT_GT(heap_.EndOf(at), offset);
  }
}

}  // namespace
}  // namespace thimble
