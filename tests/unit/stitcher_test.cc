// Stitcher: stitches blocks, caches their aliases, and drops them only when no stream can use them.
#include "allocator/stitch/stitcher.h"

#include "gtest/gtest.h"
#include "tests/unit/device.h"

namespace thimble {
namespace {

constexpr Bytes kSlot = kGranule;
constexpr Bytes kSlots = 256;
constexpr StreamId kStream{1};

class StitcherTest : public testing::Test {
 protected:
  StitcherTest()
      : home_(HomeSpace::Create(device_.driver(), kSlots * kSlot, kSlot).value()),
        aliases_(AliasSpace::Create(home_.get(), 40'000 * kSlot).value()),
        frontier_(device_.driver()),
        heap_(kSlot),
        stitcher_(&heap_, home_.get(), aliases_.get(), &frontier_),
        tag_(*frontier_.TagOf(kStream)) {
    EXPECT_TRUE(home_->Back(0, kSlots * kSlot, kSlot).ok());
    heap_.Append(kSlots * kSlot, tag_);
  }
  void TearDown() override {
    heap_.CheckInvariants();
    aliases_->CheckInvariants();
    stitcher_.CheckInvariants();
  }

  // Uses [begin, end) of the home space, in quarters of a slot.
  BlockId Use(Bytes begin, Bytes end) {
    const Extent part = {begin * kSlot / 4, end * kSlot / 4};
    return heap_.Take(heap_.At(part.begin), part);
  }
  // Every second slot of the first `slots` is used, and everything behind them.
  void Checker(Bytes slots) {
    for (Bytes slot = 1; slot < slots; slot += 2) Use(4 * slot, 4 * slot + 4);
    if (slots < kSlots) Use(4 * slots, 4 * kSlots);
  }
  Placed Build(Bytes bytes) {
    const auto outcome = stitcher_.Build(bytes, tag_, Waste::kAny);
    EXPECT_TRUE(outcome.ok()) << outcome.status();
    return outcome->placed;
  }
  void Release(const Placed& placed) {
    stitcher_.Release(placed.block, tag_, frontier_.NoteFree(tag_));
  }

  Device device_;
  std::unique_ptr<HomeSpace> home_;
  std::unique_ptr<AliasSpace> aliases_;
  Frontier frontier_;
  Heap heap_;
  Stitcher stitcher_;
  const StreamTag tag_;
};

// S1
TEST_F(StitcherTest, ABlockShowsExactlyItsExtents) {
  Checker(16);
  const Placed placed = Build(5 * kSlot);
  ASSERT_NE(placed.block, kNoBlock);
  EXPECT_TRUE(stitcher_.ShowsChain(placed.block, placed.address));
  EXPECT_FALSE(stitcher_.ShowsChain(placed.block, placed.address + kSlot));
  Bytes at = 0;
  for (BlockId id = placed.block; id != kNoBlock; id = heap_.block(id).chain) {
    ByteAt(home_->base() + heap_.block(id).offset) = 50 + at / kSlot;
    EXPECT_EQ(ByteAt(placed.address + at), 50 + at / kSlot);
    at += heap_.block(id).bytes;
  }
  EXPECT_EQ(at, 5 * kSlot);
}

TEST_F(StitcherTest, TheNextBlockOfTheSizeCostsNoDriverCall) {
  Checker(16);
  const Placed first = Build(5 * kSlot);
  Release(first);
  EXPECT_GT(stitcher_.idle_bytes(), 0u);
  const std::uint64_t calls = device_.calls();
  const auto second = stitcher_.TakeCached(5 * kSlot, tag_);
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->address, first.address);
  EXPECT_EQ(device_.calls(), calls);
  EXPECT_EQ(stitcher_.idle_bytes(), 0u);
}

TEST_F(StitcherTest, AWindowInsideACachedAliasServesASmallerBlock) {
  Checker(16);
  Release(Build(6 * kSlot));
  const auto a = stitcher_.TakeCached(2 * kSlot, tag_);
  const auto b = stitcher_.TakeCached(3 * kSlot, tag_);
  ASSERT_TRUE(a && b);
  EXPECT_TRUE(stitcher_.ShowsChain(a->block, a->address));
  EXPECT_TRUE(stitcher_.ShowsChain(b->block, b->address));
  EXPECT_FALSE(stitcher_.TakeCached(2 * kSlot, tag_).has_value()) << "only one slot of it is left";
}

TEST_F(StitcherTest, ACachedAliasWhoseBytesAreInUseServesNoRequest) {
  Checker(8);
  Release(Build(4 * kSlot));
  Use(0, 1);
  EXPECT_FALSE(stitcher_.TakeCached(4 * kSlot, tag_).has_value());
}

TEST_F(StitcherTest, ACachedAliasServesNoOtherStreamBeforeItsBytesAreClean) {
  Checker(8);
  Release(Build(4 * kSlot));
  const StreamTag other = *frontier_.TagOf(StreamId{2});
  EXPECT_FALSE(stitcher_.TakeCached(4 * kSlot, other).has_value());
  ASSERT_TRUE(frontier_.Poll(tag_).ok());
  heap_.Clean(tag_, frontier_.passed(tag_));
  EXPECT_TRUE(stitcher_.TakeCached(4 * kSlot, other).has_value());
}

// S3
TEST_F(StitcherTest, AnAliasThatShowsAChunkTwiceServesOneBlockOnly) {
  Use(1, 3);           // the middle of slot 0
  Use(4, 4 * kSlots);  // all others
  const Placed placed = Build(kSlot / 2);
  ASSERT_NE(placed.block, kNoBlock);
  EXPECT_EQ(aliases_->mappings(), 2u);
  Release(placed);
  EXPECT_FALSE(stitcher_.TakeCached(kSlot / 2, tag_).has_value());
  EXPECT_FALSE(stitcher_.TakeCached(kSlot / 4, tag_).has_value());
}

TEST_F(StitcherTest, TooLittleIsAShortfallAndChangesNothing) {
  Checker(8);
  const auto outcome = stitcher_.Build(7 * kSlot, tag_, Waste::kAny);
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->placed.block, kNoBlock);
  EXPECT_EQ(outcome->shortfall, 3 * kSlot);
  EXPECT_EQ(aliases_->mappings(), 0u);
  EXPECT_EQ(stitcher_.LargestStitch(tag_), 4 * kSlot);
}

TEST_F(StitcherTest, ARefusedMappingChangesNothing) {
  Checker(8);
  device_.driver()->FailCall(2);
  EXPECT_FALSE(stitcher_.Build(4 * kSlot, tag_, Waste::kAny).ok());
  device_.driver()->Disarm();
  EXPECT_EQ(aliases_->mappings(), 0u);
  EXPECT_EQ(heap_.free_bytes(Pool::kLarge), 4 * kSlot);
}

// S2
TEST_F(StitcherTest, OnlyIdleAliasesAreDropped) {
  Checker(16);
  const Placed kept = Build(3 * kSlot);
  Release(Build(4 * kSlot));
  stitcher_.DropIdle();
  EXPECT_EQ(stitcher_.idle_bytes(), 0u);
  EXPECT_EQ(aliases_->mappings(), 3u);
  EXPECT_TRUE(stitcher_.ShowsChain(kept.block, kept.address));
  ByteAt(kept.address + 2 * kSlot) = 1;
}

TEST_F(StitcherTest, NothingIsUnmappedBeforeTheStreamHasPassed) {
  Checker(16);
  const Placed placed = Build(4 * kSlot);
  device_.streams().HoldStream(kStream);
  Release(placed);
  stitcher_.DropIdle();
  EXPECT_EQ(device_.calls(DriverCall::kUnmap), 0u);
  ByteAt(placed.address) = 1;  // the stream's late work
  device_.streams().ReleaseStream(kStream);
  stitcher_.DropIdle();
  EXPECT_EQ(device_.calls(DriverCall::kUnmap), 4u);
}

TEST_F(StitcherTest, TheCacheIsBounded) {
  constexpr Bytes kBlock = 100 * kSlot;
  Checker(kSlots);
  const std::uint64_t rounds = Stitcher::kMaxMappings / 100 + 50;
  for (std::uint64_t i = 0; i < rounds; ++i) {
    Release(Build(kBlock));
    ASSERT_LE(aliases_->mappings(), Stitcher::kMaxMappings);
  }
  EXPECT_GT(aliases_->mappings(), Stitcher::kMaxMappings - 200);
  EXPECT_GT(device_.calls(DriverCall::kUnmap), 0u);
}

TEST_F(StitcherTest, TheBoundWaitsForAStreamThatMayUseADroppedAlias) {
  Checker(kSlots);
  device_.streams().HoldStream(kStream);
  const std::uint64_t rounds = Stitcher::kMaxMappings / 100 + 10;
  for (std::uint64_t i = 0; i < rounds; ++i) Release(Build(100 * kSlot));
  EXPECT_EQ(aliases_->mappings(), rounds * 100);
  EXPECT_EQ(device_.calls(DriverCall::kUnmap), 0u);
  device_.streams().ReleaseStream(kStream);
  Release(Build(100 * kSlot));
  EXPECT_LE(aliases_->mappings(), Stitcher::kMaxMappings);
}

}  // namespace
}  // namespace thimble
