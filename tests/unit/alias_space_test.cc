// AliasSpace: the same bytes side by side, at a second address, for as long as they are wanted.
#include "allocator/vmm/alias_space.h"

#include "gtest/gtest.h"
#include "tests/unit/device.h"

namespace thimble {
namespace {

constexpr Bytes kSlot = kGranule;

class AliasSpaceTest : public testing::Test {
 protected:
  AliasSpaceTest()
      : home_(HomeSpace::Create(device_.driver(), 64 * kSlot, kSlot).value()),
        aliases_(AliasSpace::Create(home_.get(), 32 * kSlot).value()) {
    // Slots 0-7 are chunks of their own, 8-15 one large chunk, 16-23 again single ones.
    EXPECT_TRUE(home_->Back(0, 8 * kSlot, kSlot).ok());
    EXPECT_TRUE(home_->Back(8 * kSlot, 8 * kSlot, 8 * kSlot).ok());
    EXPECT_TRUE(home_->Back(16 * kSlot, 8 * kSlot, kSlot).ok());
  }
  void TearDown() override {
    aliases_->CheckInvariants();
    aliases_.reset();
    for (Bytes slot = 0; slot < 24; ++slot) {
      EXPECT_EQ(home_->chunk(home_->ChunkAt(slot * kSlot)).aliases, 0u) << slot;
    }
    home_.reset();
    EXPECT_EQ(device_.used(), 0u);
    EXPECT_EQ(device_.host().areas(), 0u);
  }

  static Extent Slots(Bytes begin, Bytes end) { return {begin * kSlot, end * kSlot}; }
  AliasId Build(std::vector<Extent> runs) { return aliases_->Build(runs).value(); }

  Device device_;
  std::unique_ptr<HomeSpace> home_;
  std::unique_ptr<AliasSpace> aliases_;
};

TEST_F(AliasSpaceTest, ShowsTheBytesOfItsRunsInOrder) {
  const AliasId id = Build({Slots(5, 6), Slots(1, 3), Slots(8, 16)});
  EXPECT_EQ(aliases_->alias(id).bytes, 11 * kSlot);
  const Bytes home_slots[] = {5, 1, 2, 8, 9, 10, 11, 12, 13, 14, 15};
  for (Bytes i = 0; i < 11; ++i) {
    ByteAt(home_->base() + home_slots[i] * kSlot + 17) = static_cast<std::uint8_t>(100 + i);
    EXPECT_EQ(ByteAt(aliases_->address(id) + i * kSlot + 17), 100 + i);
  }
  EXPECT_EQ(aliases_->mappings(), 4u) << "one for each chunk, however large";
}

TEST_F(AliasSpaceTest, AChunkMayBeShownTwice) {
  const AliasId id = Build({Slots(3, 4), Slots(6, 7), Slots(3, 4)});
  ByteAt(aliases_->address(id)) = 42;
  EXPECT_EQ(ByteAt(aliases_->address(id) + 2 * kSlot), 42);
  EXPECT_EQ(home_->chunk(home_->ChunkAt(3 * kSlot)).aliases, 2u);
}

TEST_F(AliasSpaceTest, ADroppedAliasGivesItsAddressesBack) {
  const AliasId first = Build({Slots(0, 4)});
  const Address address = aliases_->address(first);
  Build({Slots(4, 8)});
  aliases_->Drop(first);
  EXPECT_EQ(aliases_->mappings(), 4u);
  EXPECT_EQ(aliases_->address(Build({Slots(16, 20)})), address);
}

TEST_F(AliasSpaceTest, AWindowThatDoesNotFitIsRefused) {
  Build({Slots(0, 8), Slots(8, 16), Slots(16, 24)});
  const auto refused = aliases_->Build(std::vector<Extent>{Slots(0, 8), Slots(16, 17)});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  Build({Slots(0, 8)});
}

TEST_F(AliasSpaceTest, AFailedBuildLeavesNoAlias) {
  const std::vector<Extent> runs = {Slots(0, 2), Slots(5, 7)};
  const std::uint64_t areas = device_.host().areas();
  const std::uint64_t calls = 5;  // four mappings, access once
  for (std::uint64_t k = 0; k < calls; ++k) {
    device_.driver()->FailCall(k);
    EXPECT_FALSE(aliases_->Build(runs).ok());
    aliases_->CheckInvariants();
    EXPECT_EQ(aliases_->mappings(), 0u);
    EXPECT_EQ(device_.host().areas(), areas);
  }
  device_.driver()->Disarm();
}

TEST_F(AliasSpaceTest, AFailedUnmapIsRetried) {
  const AliasId id = Build({Slots(0, 4)});
  device_.driver()->FailCall(2);  // two mappings go, two stay
  aliases_->Drop(id);
  EXPECT_EQ(aliases_->mappings(), 2u);
  aliases_->CheckInvariants();
  EXPECT_EQ(home_->chunk(home_->ChunkAt(0)).aliases, 1u);
  EXPECT_EQ(home_->chunk(home_->ChunkAt(3 * kSlot)).aliases, 0u);
  device_.driver()->Disarm();
  aliases_->RetryHalfDropped();
  EXPECT_EQ(aliases_->mappings(), 0u);
}

TEST_F(AliasSpaceTest, AddressesOfAHalfDroppedAliasAreNotHandedOut) {
  const AliasId id = Build({Slots(0, 4)});
  const Address address = aliases_->address(id);
  device_.driver()->FailAll(DriverCall::kUnmap);
  aliases_->Drop(id);
  EXPECT_GE(aliases_->address(Build({Slots(4, 8)})), address + 4 * kSlot);
  device_.driver()->Disarm();
}

TEST_F(AliasSpaceTest, TheDestructorTriesToFreeEverythingTwice) {
  Build({Slots(0, 8)});
  Build({Slots(8, 16), Slots(1, 2)});
  device_.driver()->FailEvery(2);
  aliases_.reset();
  device_.driver()->Disarm();
  aliases_ = AliasSpace::Create(home_.get(), kSlot).value();  // TearDown() counts the mappings
}

}  // namespace
}  // namespace thimble
