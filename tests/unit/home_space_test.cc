// HomeSpace: a chunk has one place, an error changes nothing, and a refusal loses no chunk.
#include "allocator/vmm/home_space.h"

#include "gtest/gtest.h"
#include "tests/unit/device.h"

namespace thimble {
namespace {

constexpr Bytes kSlot = 2 * kGranule;
constexpr Bytes kCapacity = 64 * kSlot;

class HomeSpaceTest : public testing::Test {
 protected:
  HomeSpaceTest() : home_(HomeSpace::Create(device_.driver(), kCapacity, kSlot).value()) {}
  void TearDown() override {
    if (home_ != nullptr) home_->CheckInvariants();
    home_.reset();
    EXPECT_EQ(device_.used(), 0u);
    EXPECT_EQ(device_.host().areas(), 0u);
  }

  absl::Status Back(Bytes slot, Bytes slots, Bytes chunk_slots = 1) {
    return home_->Back(slot * kSlot, slots * kSlot, chunk_slots * kSlot);
  }
  ChunkId ChunkAt(Bytes slot) const { return home_->ChunkAt(slot * kSlot); }

  Device device_;
  std::unique_ptr<HomeSpace> home_;
};

TEST_F(HomeSpaceTest, IsAlignedForEveryBlock) {
  EXPECT_EQ(home_->base() % HomeSpace::kAlignment, 0u);
  EXPECT_EQ(home_->end(), 0u);
}

TEST_F(HomeSpaceTest, BackedPlacesAreMemory) {
  ASSERT_TRUE(Back(0, 4).ok());
  for (Bytes at = 0; at < 4 * kSlot; at += kGranule) ByteAt(home_->base() + at) = 1;
  EXPECT_EQ(home_->backed_bytes(), 4 * kSlot);
  EXPECT_EQ(home_->end(), 4 * kSlot);
}

TEST_F(HomeSpaceTest, GrantsAccessWithOneCall) {
  ASSERT_TRUE(Back(0, 16).ok());
  EXPECT_EQ(device_.calls(DriverCall::kSetAccess), 1u);
  EXPECT_EQ(device_.calls(DriverCall::kMap), 16u);
}

TEST_F(HomeSpaceTest, AChunkCoversAllItsSlots) {
  ASSERT_TRUE(Back(0, 8, /*chunk_slots=*/8).ok());
  ASSERT_TRUE(Back(8, 2).ok());
  for (Bytes slot = 0; slot < 8; ++slot) EXPECT_EQ(ChunkAt(slot), ChunkAt(0));
  EXPECT_NE(ChunkAt(8), ChunkAt(9));
  EXPECT_EQ(home_->chunk(ChunkAt(3)).bytes, 8 * kSlot);
  EXPECT_EQ(ChunkAt(10), kNoChunk);
  EXPECT_EQ(device_.calls(DriverCall::kCreate), 3u);
}

TEST_F(HomeSpaceTest, AVacatedPlaceCanBeBackedAgain) {
  ASSERT_TRUE(Back(0, 3).ok());
  ASSERT_TRUE(home_->Vacate(ChunkAt(1)).ok());
  EXPECT_EQ(ChunkAt(1), kNoChunk);
  EXPECT_EQ(home_->backed_bytes(), 2 * kSlot);
  EXPECT_EQ(device_.used(), 2 * kSlot);
  EXPECT_EQ(home_->end(), 3 * kSlot);
  ASSERT_TRUE(Back(1, 1).ok());
  ByteAt(home_->base() + kSlot) = 7;
}

TEST_F(HomeSpaceTest, AFailedBackLeavesNothing) {
  ASSERT_TRUE(Back(0, 2).ok());
  const std::uint64_t calls = 9;  // 4 chunks made and mapped, access once
  for (std::uint64_t k = 0; k < calls; ++k) {
    device_.driver()->FailCall(k);
    EXPECT_FALSE(Back(2, 4).ok());
    home_->CheckInvariants();
    EXPECT_EQ(home_->backed_bytes(), 2 * kSlot);
    EXPECT_EQ(device_.used(), 2 * kSlot);
    EXPECT_EQ(home_->end(), 2 * kSlot);
  }
  device_.driver()->FailCall(calls);
  EXPECT_TRUE(Back(2, 4).ok());
}

TEST_F(HomeSpaceTest, AChunkThatIsNotDestroyedIsUsedAgainFirst) {
  ASSERT_TRUE(Back(0, 2).ok());
  device_.driver()->FailAll(DriverCall::kDestroy);
  ASSERT_TRUE(home_->Vacate(ChunkAt(0)).ok());
  EXPECT_EQ(home_->spare_bytes(), kSlot);
  const std::uint64_t created = device_.calls(DriverCall::kCreate);
  ASSERT_TRUE(Back(0, 1).ok());
  EXPECT_EQ(device_.calls(DriverCall::kCreate), created);
  EXPECT_EQ(home_->spare_bytes(), 0u);
  device_.driver()->Disarm();
}

TEST_F(HomeSpaceTest, ADetachedChunkIsTheFirstToBeUsedElsewhere) {
  ASSERT_TRUE(Back(0, 2).ok());
  ASSERT_TRUE(home_->Detach(ChunkAt(0)).ok());
  EXPECT_EQ(ChunkAt(0), kNoChunk);
  EXPECT_EQ(device_.used(), 2 * kSlot) << "it stays reserved";
  EXPECT_EQ(home_->spare_bytes(), kSlot);
  const std::uint64_t created = device_.calls(DriverCall::kCreate);
  ASSERT_TRUE(Back(2, 1).ok());
  EXPECT_EQ(device_.calls(DriverCall::kCreate), created);
  EXPECT_EQ(home_->spare_bytes(), 0u);
  ByteAt(home_->base() + 2 * kSlot) = 7;
}

TEST_F(HomeSpaceTest, AChunkThatCannotBeDetachedStays) {
  ASSERT_TRUE(Back(0, 2).ok());
  device_.driver()->FailAll(DriverCall::kUnmap);
  EXPECT_FALSE(home_->Detach(ChunkAt(0)).ok());
  device_.driver()->Disarm();
  EXPECT_EQ(home_->backed_bytes(), 2 * kSlot);
  ByteAt(home_->base()) = 7;
}

TEST_F(HomeSpaceTest, SparesAreDestroyedWhenTheDriverIsWell) {
  ASSERT_TRUE(Back(0, 2).ok());
  device_.driver()->FailAll(DriverCall::kDestroy);
  ASSERT_TRUE(home_->Vacate(ChunkAt(0)).ok());
  device_.driver()->Disarm();
  home_->DestroySpares();
  EXPECT_EQ(home_->spare_bytes(), 0u);
  EXPECT_EQ(device_.used(), kSlot);
}

// A place whose failed backing cannot be undone: it must not be mapped over, nor its bytes lost.
TEST_F(HomeSpaceTest, AStuckPlaceIsFreedBeforeItIsBackedAgain) {
  FaultPlan plan;  // access is refused, and so is undoing the mappings
  plan.every = 1;
  plan.among = {DriverCall::kSetAccess, DriverCall::kUnmap};
  device_.driver()->Arm(plan);
  EXPECT_FALSE(Back(0, 8, /*chunk_slots=*/8).ok());
  EXPECT_EQ(home_->spare_bytes(), 8 * kSlot) << "the driver still has them";
  EXPECT_FALSE(Back(3, 1).ok()) << "the stuck chunk cannot be unmapped yet";
  device_.driver()->Disarm();
  EXPECT_TRUE(Back(3, 1).ok());
  EXPECT_EQ(home_->spare_bytes(), 0u);
  EXPECT_EQ(device_.used(), kSlot);
}

TEST_F(HomeSpaceTest, StuckPlacesGoBackWithTheSpares) {
  FaultPlan plan;
  plan.every = 1;
  plan.among = {DriverCall::kSetAccess, DriverCall::kUnmap};
  device_.driver()->Arm(plan);
  EXPECT_FALSE(Back(0, 4).ok());
  device_.driver()->Disarm();
  home_->DestroySpares();
  EXPECT_EQ(home_->spare_bytes(), 0u);
  EXPECT_EQ(device_.used(), 0u);
}

TEST_F(HomeSpaceTest, ARefusedUnmapLeavesTheChunkWhereItIs) {
  ASSERT_TRUE(Back(0, 1).ok());
  ByteAt(home_->base()) = 9;
  device_.driver()->FailAll(DriverCall::kUnmap);
  EXPECT_FALSE(home_->Vacate(ChunkAt(0)).ok());
  device_.driver()->Disarm();
  EXPECT_NE(ChunkAt(0), kNoChunk);
  EXPECT_EQ(ByteAt(home_->base()), 9);
}

TEST_F(HomeSpaceTest, TheDestructorTriesToFreeEverythingTwice) {
  ASSERT_TRUE(Back(0, 4).ok());
  device_.driver()->FailEvery(2);  // TearDown() finds that nothing is left
  home_.reset();
  device_.driver()->Disarm();
}

TEST(HomeSpaceCreate, FailsWithTheDriversReason) {
  Device device;
  device.driver()->FailCall(0);
  const auto home = HomeSpace::Create(device.driver(), kCapacity, kSlot);
  EXPECT_EQ(home.status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace thimble
