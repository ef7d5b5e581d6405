// SmallMarks: if several threads free the same block, one succeeds.
#include "allocator/arena/small_marks.h"

#include <atomic>
#include <thread>
#include <vector>

#include "allocator/stitch/block.h"
#include "gtest/gtest.h"

namespace thimble {
namespace {

using State = SmallMarks::State;
constexpr Bytes kSlot = 64 * kKiB;

class SmallMarksTest : public testing::Test {
 protected:
  SmallMarksTest() : marks_(SmallMarks::Create(1024 * kSlot, kSlot).value()) {}
  std::unique_ptr<SmallMarks> marks_;
};

TEST_F(SmallMarksTest, NothingIsMarkedAtFirst) {
  for (Bytes offset = 0; offset < 1024 * kSlot; offset += kSlot - kUnit) {
    ASSERT_EQ(marks_->At(offset - offset % kUnit).state, State::kNone);
  }
}

TEST_F(SmallMarksTest, EveryClassIsRememberedInEveryState) {
  for (int size_class = 0; size_class < kMarkClasses; ++size_class) {
    const Bytes offset = 3 * kSlot + size_class * kUnit;
    marks_->SetInUse(offset, size_class);
    EXPECT_EQ(marks_->At(offset).state, State::kInUse);
    EXPECT_EQ(marks_->At(offset).size_class, size_class);
    ASSERT_TRUE(marks_->ClaimForCache(offset, size_class));
    EXPECT_EQ(marks_->At(offset).state, State::kCached);
    EXPECT_EQ(marks_->At(offset).size_class, size_class);
    marks_->Clear(offset);
    EXPECT_EQ(marks_->At(offset).state, State::kNone);
  }
}

TEST_F(SmallMarksTest, ABlockIsClaimedOnce) {
  marks_->SetInUse(kUnit, 4);
  EXPECT_TRUE(marks_->ClaimForFree(kUnit, 4));
  EXPECT_FALSE(marks_->ClaimForFree(kUnit, 4));
  EXPECT_FALSE(marks_->ClaimForCache(kUnit, 4));
  EXPECT_EQ(marks_->At(kUnit).state, State::kNone);
}

TEST_F(SmallMarksTest, NeighboursAreNotTouched) {
  marks_->SetInUse(kUnit, 1);
  marks_->SetInUse(2 * kUnit, 2);
  marks_->Clear(kUnit);
  EXPECT_EQ(marks_->At(2 * kUnit).size_class, 2);
}

TEST_F(SmallMarksTest, OfManyThreadsOneClaimsTheBlock) {
  for (int round = 0; round < 200; ++round) {
    marks_->SetInUse(0, 0);
    std::atomic<int> winners{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        if (i % 2 == 0 ? marks_->ClaimForCache(0, 0) : marks_->ClaimForFree(0, 0)) ++winners;
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(winners, 1);
  }
}

TEST(SmallMarksCreate, ATableThatDoesNotFitIsRefused) {
  const auto marks = SmallMarks::Create(Bytes{1} << 62, kSlot);
  EXPECT_EQ(marks.status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace thimble
