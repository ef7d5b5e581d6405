// Space: how it serves a request and at what cost, and that a refused request changes nothing.
#include "allocator/arena/space.h"

#include "allocator/arena/growth.h"
#include "allocator/plan/solver.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/device.h"

namespace thimble {
namespace {

using ::testing::HasSubstr;

constexpr Bytes kSlot = 16 * kKiB;

class SpaceTest : public testing::Test {
 protected:
  void Make(Bytes slots, bool stitch = true) {
    space_ = Space::Create(device_.driver(), {slots * kSlot, kSlot, stitch}).value();
  }
  void TearDown() override { space_->CheckInvariants(); }

  absl::StatusOr<Address> Try(Bytes bytes, Bytes alignment = kUnit, bool long_lived = false) {
    Request request;
    request.bytes = bytes;
    request.alignment = alignment;
    request.long_lived = long_lived;
    return space_->Allocate(request);
  }
  Address Allocate(Bytes bytes) {
    const auto address = Try(bytes);
    EXPECT_TRUE(address.ok()) << address.status();
    return address.value_or(Address());
  }
  std::vector<Address> Fill(int count, Bytes bytes) {
    std::vector<Address> blocks;
    for (int i = 0; i < count; ++i) blocks.push_back(Allocate(bytes));
    return blocks;
  }
  void Free(Address address) { EXPECT_TRUE(space_->Free(address, StreamId{}).ok()); }
  void Checker(int slots) {
    const std::vector<Address> blocks = Fill(slots, kSlot);
    for (std::size_t i = 0; i < blocks.size(); i += 2) Free(blocks[i]);
  }

  Device device_;
  std::unique_ptr<Space> space_;
};

TEST_F(SpaceTest, BestFitCostsNoDriverCall) {
  Make(64);
  Free(Fill(2, kSlot)[0]);
  const std::uint64_t calls = device_.calls();
  Allocate(kSlot / 2);
  Allocate(kSlot / 2);
  EXPECT_EQ(device_.calls(), calls);
}

TEST_F(SpaceTest, SmallBlocksShareOneSlot) {
  Make(64);
  for (Bytes i = 0; i < kSlot / kUnit; ++i) Allocate(kUnit);
  EXPECT_EQ(space_->reserved(), kSlot);
  EXPECT_TRUE(space_->IsSmall(kUnit));
  EXPECT_FALSE(space_->IsSmall(kSlot));
}

TEST_F(SpaceTest, ALargeBlockGoesBetweenSmallOnesOnlyWhereNothingElseIsLeft) {
  Make(2);
  const std::vector<Address> small = Fill(kSlot / kUnit, kUnit);
  for (std::size_t i = 1; i < small.size(); ++i) Free(small[i]);
  const Address apart = Allocate(kSlot / 2);
  EXPECT_EQ(space_->reserved(), 2 * kSlot) << "new memory comes first";
  Allocate(kSlot / 2);
  const Address between = Allocate(kSlot / 2);
  EXPECT_EQ(Try(kSlot / 2).status().code(), absl::StatusCode::kResourceExhausted);
  Free(between);
  Free(apart);
  EXPECT_EQ(Allocate(kSlot / 2), apart);
  Allocate(kSlot - kUnit);
}

TEST_F(SpaceTest, LongLivedBlocksLeaveTheChunksOfOthersWhole) {
  Make(16);
  const std::vector<Address> blocks = Fill(4, 4 * kSlot);
  for (const Address block : blocks) Free(block);
  for (int i = 0; i < 4; ++i) {
    Allocate(3 * kSlot);
    ASSERT_TRUE(Try(kSlot / 2, kUnit, /*long_lived=*/true).ok());
  }
  EXPECT_EQ(space_->heap().LargestFree(), 2 * kSlot) << "the four share two slots";
  EXPECT_EQ(space_->reserved(), 16 * kSlot);
  const auto aligned = Try(kSlot - kUnit, kSlot / 2, /*long_lived=*/true);
  ASSERT_TRUE(aligned.ok()) << aligned.status();
  EXPECT_EQ(*aligned % (kSlot / 2), 0u);
}

TEST_F(SpaceTest, ALongLivedBlockWithoutRoomInWholeSlotsGoesWhereOthersGo) {
  Make(2);
  Allocate(kSlot / 2);
  Allocate(kSlot);
  EXPECT_TRUE(Try(kSlot / 2, kUnit, /*long_lived=*/true).ok());
}

TEST_F(SpaceTest, GrowthTakesOnlyWhatFreeMemoryCannotGive) {
  Make(64);
  Checker(16);
  Allocate(12 * kSlot);
  EXPECT_EQ(space_->reserved(), 20 * kSlot) << "8 slots were free, 4 more were needed";
  EXPECT_EQ(space_->counts().stitches, 1u);
}

TEST_F(SpaceTest, MuchGrowthComesInLargeChunks) {
  Make(1024);
  Allocate(256 * kSlot);
  EXPECT_EQ(device_.calls(DriverCall::kCreate), 32u);
  const HomeSpace& home = space_->home();
  EXPECT_EQ(home.chunk(home.ChunkAt(0)).bytes, kLargeChunkSlots * kSlot);
}

TEST_F(SpaceTest, ARequestBeyondTheLimitLeavesNoTrace) {
  Make(16);
  Checker(16);
  const std::uint64_t created = device_.calls(DriverCall::kCreate);
  EXPECT_EQ(Try(9 * kSlot).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(space_->reserved(), 16 * kSlot);
  EXPECT_EQ(space_->heap().used_bytes(), 8 * kSlot);
  EXPECT_EQ(device_.calls(DriverCall::kCreate), created);
  Allocate(8 * kSlot);
}

TEST_F(SpaceTest, GrowthThatDidNotHelpIsGivenBack) {
  Make(32);
  Checker(8);
  // The stitch over old and new chunks fails, after the new ones were taken.
  FaultPlan plan;
  plan.first = 1;  // the first is for the new chunks at home
  plan.every = 1;  // the second attempt is not to succeed
  plan.among = {DriverCall::kSetAccess};
  device_.driver()->Arm(plan);
  EXPECT_FALSE(Try(6 * kSlot).ok());
  device_.driver()->Disarm();
  EXPECT_EQ(space_->reserved(), 8 * kSlot);
  EXPECT_EQ(device_.used(), 8 * kSlot);
  Allocate(6 * kSlot);
}

TEST_F(SpaceTest, AnAddressThatIsNotABlockIsExplained) {
  Make(16);
  const Address block = Allocate(2 * kSlot);
  const auto error_of = [&](Address address) {
    const absl::Status status = space_->Free(address, StreamId{});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return MessageOf(status);
  };
  EXPECT_THAT(error_of(block + kUnit), HasSubstr("points 256 bytes into a block"));
  EXPECT_THAT(error_of(Address(1)), HasSubstr("not memory of this arena"));
  Free(block);
  EXPECT_THAT(error_of(block), HasSubstr("free already"));
}

TEST_F(SpaceTest, TrimStopsBetweenTwoChunksWhenTheDriverRefuses) {
  Make(16);
  for (const Address address : Fill(8, kSlot)) Free(address);
  FaultPlan plan;
  plan.first = 3;
  plan.among = {DriverCall::kUnmap};
  device_.driver()->Arm(plan);
  Bytes released = 0;
  space_->CleanPassed();
  EXPECT_FALSE(space_->Trim(0, &released).ok());
  device_.driver()->Disarm();
  EXPECT_EQ(released, 3 * kSlot);
  EXPECT_EQ(space_->reserved(), 5 * kSlot);
  space_->CheckInvariants();
}

TEST_F(SpaceTest, TrimBeginsAtTheEnd) {
  Make(16);
  for (const Address address : Fill(8, kSlot)) Free(address);
  Bytes released = 0;
  space_->CleanPassed();
  ASSERT_TRUE(space_->Trim(5 * kSlot, &released).ok());
  EXPECT_NE(space_->home().ChunkAt(4 * kSlot), kNoChunk);
  EXPECT_EQ(space_->home().ChunkAt(5 * kSlot), kNoChunk);
}

TEST_F(SpaceTest, StatisticsOfAStitchedBlock) {
  Make(16);
  Checker(16);
  const Address address = Allocate(4 * kSlot);
  const std::optional<BlockInfo> info = space_->Describe(address);
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->bytes, 4 * kSlot);
  EXPECT_EQ(info->seams, 3u);
  EXPECT_FALSE(space_->IsHome(address));
  EXPECT_FALSE(space_->Describe(address + kUnit).has_value());
  for (const Bytes inside : {Bytes{0}, Bytes{1}, 3 * kSlot, 4 * kSlot - 1}) {
    const std::optional<BlockInfo> around = space_->DescribeAround(address + inside);
    ASSERT_TRUE(around.has_value()) << inside;
    EXPECT_EQ(around->address, address);
    EXPECT_EQ(around->bytes, 4 * kSlot);
  }
  EXPECT_FALSE(space_->DescribeAround(address + 4 * kSlot).has_value());
}

// P6: as long as one stream asks, what has a place in the plan is handed out past the heap.
TEST_F(SpaceTest, APlanServesOneStreamPastTheHeapAndTwoFromIt) {
  space_ =
      Space::Create(device_.driver(), {64 * kSlot, kSlot, /*stitch=*/true, /*plan=*/true}).value();
  std::uint64_t step = 0;
  const auto ask = [&](std::uint64_t key, StreamId stream) {
    Request request;
    request.bytes = kSlot;
    request.stream = stream;
    request.key = key;
    request.step = step;
    return space_->Allocate(request).value();
  };
  const auto free = [&](Address block, StreamId stream) {
    ASSERT_TRUE(space_->Free(block, stream).ok());
    if (space_->WantsDraft()) {
      const auto draft = space_->DraftPlan();
      if (draft) space_->AdoptPlan(*draft, plan::SolveConflicts(draft->ToProblem(), {}));
    }
    if (space_->PlanIsDue()) space_->ActivatePlan();
  };
  constexpr StreamId kFirst{1};
  constexpr StreamId kSecond{2};
  for (step = 1; step <= 20; ++step) {
    std::vector<Address> blocks;
    for (std::uint64_t key = 1; key <= 8; ++key) blocks.push_back(ask(key, kFirst));
    for (const Address block : blocks) free(block, kFirst);
  }
  ASSERT_EQ(space_->plan_stats().plans, 1u);
  const Address first = ask(1, kFirst);
  EXPECT_EQ(space_->used(), kSlot);
  EXPECT_EQ(space_->DescribeAround(first + kSlot - 1).value_or(BlockInfo{}).address, first);
  EXPECT_FALSE(space_->DescribeAround(first + kSlot).has_value());
  EXPECT_EQ(space_->heap().used_bytes(), 0u);
  EXPECT_EQ(space_->heap().held_bytes(), 8 * kSlot);
  const Address second = ask(2, kSecond);
  EXPECT_EQ(space_->used(), 2 * kSlot);
  EXPECT_EQ(space_->heap().used_bytes(), 2 * kSlot);
  EXPECT_EQ(space_->heap().held_bytes(), 0u);
  free(first, kFirst);
  free(second, kSecond);
}

}  // namespace
}  // namespace thimble
