// Bins: every free block is found by size, in constant time, as tightly as promised.
#include "allocator/stitch/bins.h"

#include <algorithm>

#include "gtest/gtest.h"
#include "tests/workloads/random.h"

namespace thimble {
namespace {

class BinsTest : public testing::Test {
 protected:
  BlockId Insert(Bytes bytes) {
    blocks_.emplace_back();
    blocks_.back().bytes = bytes;
    const auto id = static_cast<BlockId>(blocks_.size() - 1);
    bins_.Insert(blocks_, id);
    return id;
  }
  Bytes FoundBytes(Bytes bytes) const {
    const BlockId id = bins_.FindFit(blocks_, bytes);
    return id == kNoBlock ? 0 : blocks_[id].bytes;
  }
  std::size_t Count(Bytes bytes) const {
    std::size_t count = 0;
    bins_.ForEach(blocks_, bytes, [&](BlockId) {
      ++count;
      return true;
    });
    return count;
  }

  Bins bins_;
  Bins::Table blocks_;
};

TEST_F(BinsTest, EmptyBinsFindNothing) {
  EXPECT_TRUE(bins_.empty());
  EXPECT_EQ(bins_.FindFit(blocks_, kUnit), kNoBlock);
  EXPECT_EQ(bins_.LargestBytes(blocks_), 0u);
}

TEST_F(BinsTest, LargerSizesNeverHaveLowerBins) {
  int previous = 0;
  for (Bytes bytes = kUnit; bytes < Bins::kLargest; bytes += std::max(kUnit, bytes / 77)) {
    const int bin = Bins::BinOf(bytes);
    ASSERT_GE(bin, previous) << bytes;
    ASSERT_LT(bin, Bins::kBins);
    previous = bin;
  }
}

TEST_F(BinsTest, SizesOfOneBinDifferByAtMostOneThirtySecond) {
  for (Bytes bytes = 64 * kUnit; bytes < Bins::kLargest / 2; bytes += bytes / 5) {
    const Bytes larger = bytes + bytes / 31 + kUnit;
    EXPECT_GT(Bins::BinOf(larger), Bins::BinOf(bytes)) << bytes;
  }
}

TEST_F(BinsTest, FindsTheTightestOfAFew) {
  for (const Bytes bytes : {40, 35, 33, 38, 36}) Insert(bytes * kUnit);
  EXPECT_EQ(FoundBytes(34 * kUnit), 35 * kUnit);
  EXPECT_EQ(FoundBytes(36 * kUnit), 36 * kUnit);
  EXPECT_EQ(FoundBytes(1), 33 * kUnit);
  EXPECT_EQ(FoundBytes(41 * kUnit), 0u);
}

TEST_F(BinsTest, OfEqualSizesTheLastFreedIsFirst) {
  Insert(kMiB);
  const BlockId warm = Insert(kMiB);
  EXPECT_EQ(bins_.FindFit(blocks_, kMiB), warm);
}

TEST_F(BinsTest, RemovedBlocksAreNotFound) {
  const BlockId small = Insert(kKiB);
  const BlockId large = Insert(kMiB);
  bins_.Remove(blocks_, small);
  EXPECT_EQ(FoundBytes(kKiB), kMiB);
  bins_.Remove(blocks_, large);
  EXPECT_TRUE(bins_.empty());
}

TEST_F(BinsTest, ForEachVisitsOnlyLargeEnoughBlocksAndStopsWhenTold) {
  for (Bytes units = 1; units <= 100; ++units) Insert(units * kUnit);
  EXPECT_EQ(Count(0), 100u);
  EXPECT_EQ(Count(91 * kUnit), 10u);
  int visits = 0;
  bins_.ForEach(blocks_, 0, [&](BlockId) { return ++visits < 3; });
  EXPECT_EQ(visits, 3);
}

// Against a plain list: a fit is found exactly when there is one (up to the bounded walk within the
// bin of the size itself), and never one that is too small.
TEST_F(BinsTest, AgreesWithASearchThroughAll) {
  workloads::Random random(7);
  std::vector<BlockId> listed;
  for (int round = 0; round < 20'000; ++round) {
    if (listed.empty() || (listed.size() < 300 && random.Index(2) == 0)) {
      listed.push_back(Insert(RoundUp(random.LogUniform(1, kGiB), kUnit)));
    } else {
      const std::size_t at = random.Index(listed.size());
      bins_.Remove(blocks_, listed[at]);
      listed[at] = listed.back();
      listed.pop_back();
    }
    const Bytes wanted = RoundUp(random.LogUniform(1, kGiB), kUnit);
    Bytes tightest = 0;
    Bytes largest = 0;
    bool in_higher_bin = false;
    for (const BlockId id : listed) {
      const Bytes bytes = blocks_[id].bytes;
      largest = std::max(largest, bytes);
      if (bytes < wanted) continue;
      if (tightest == 0 || bytes < tightest) tightest = bytes;
      in_higher_bin = in_higher_bin || Bins::BinOf(bytes) > Bins::BinOf(wanted);
    }
    const Bytes found = FoundBytes(wanted);
    ASSERT_TRUE(found == 0 || found >= wanted);
    ASSERT_TRUE(found != 0 || !in_higher_bin) << "a fit of " << tightest << " was missed";
    ASSERT_TRUE(tightest != 0 || found == 0);
    ASSERT_EQ(bins_.LargestBytes(blocks_), largest);
    ASSERT_EQ(Count(0), listed.size());
  }
}

}  // namespace
}  // namespace thimble
