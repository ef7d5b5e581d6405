// Frontier: a free on a stream is passed exactly when the device is beyond it.
#include "allocator/stitch/frontier.h"

#include <set>

#include "gtest/gtest.h"
#include "tests/unit/device.h"

namespace thimble {
namespace {

constexpr StreamId kStream{7};

class FrontierTest : public testing::Test {
 protected:
  FrontierTest() : frontier_(device_.driver()) {}

  Device device_;
  Frontier frontier_;
};

TEST_F(FrontierTest, AStreamKeepsItsTag) {
  const StreamTag tag = *frontier_.TagOf(kStream);
  EXPECT_NE(tag, kCleanTag);
  EXPECT_NE(*frontier_.TagOf(StreamId{8}), tag);
  EXPECT_EQ(*frontier_.TagOf(kStream), tag);
}

TEST_F(FrontierTest, TheDefaultStreamIsAStream) {
  EXPECT_EQ(frontier_.LastTagIf(StreamId{0}), kCleanTag);
  EXPECT_NE(*frontier_.TagOf(StreamId{0}), kCleanTag);
}

TEST_F(FrontierTest, TheDriverIsNotAskedUntilACallerNeedsTheAnswer) {
  const StreamTag tag = *frontier_.TagOf(kStream);
  for (int i = 0; i < 100; ++i) frontier_.NoteFree(tag);
  EXPECT_EQ(device_.calls(), 0u);
  ASSERT_TRUE(frontier_.Poll(tag).ok());
  EXPECT_EQ(device_.calls(DriverCall::kRecord), 1u);
}

TEST_F(FrontierTest, NothingFreedNothingAsked) {
  const StreamTag tag = *frontier_.TagOf(kStream);
  ASSERT_TRUE(frontier_.Poll(tag).ok());
  ASSERT_TRUE(frontier_.Wait(tag).ok());
  EXPECT_EQ(device_.calls(), 0u);
}

TEST_F(FrontierTest, AHeldStreamHasNotPassed) {
  const StreamTag tag = *frontier_.TagOf(kStream);
  const Epoch early = frontier_.NoteFree(tag);
  ASSERT_TRUE(frontier_.Poll(tag).ok());
  EXPECT_GE(frontier_.passed(tag), early);
  device_.streams().HoldStream(kStream);
  const Epoch late = frontier_.NoteFree(tag);
  EXPECT_GT(late, early);
  ASSERT_TRUE(frontier_.Poll(tag).ok());
  EXPECT_LT(frontier_.passed(tag), late);
  EXPECT_GE(frontier_.passed(tag), early);
  device_.streams().ReleaseStream(kStream);
  ASSERT_TRUE(frontier_.Poll(tag).ok());
  EXPECT_GE(frontier_.passed(tag), late);
}

TEST_F(FrontierTest, WaitPassesAllFrees) {
  const StreamTag tag = *frontier_.TagOf(kStream);
  Epoch last;
  for (int i = 0; i < 5; ++i) {
    last = frontier_.NoteFree(tag);
    ASSERT_TRUE(frontier_.Poll(tag).ok());
  }
  ASSERT_TRUE(frontier_.Wait(tag).ok());
  EXPECT_EQ(frontier_.passed(tag), last);
}

TEST_F(FrontierTest, AnErrorMeansNotPassed) {
  const StreamTag tag = *frontier_.TagOf(kStream);
  for (const DriverCall call : {DriverCall::kRecord, DriverCall::kPassed}) {
    const Epoch freed = frontier_.NoteFree(tag);
    device_.driver()->FailAll(call);
    EXPECT_FALSE(frontier_.Poll(tag).ok());
    EXPECT_LT(frontier_.passed(tag), freed);
    device_.driver()->Disarm();
    ASSERT_TRUE(frontier_.Poll(tag).ok());
    EXPECT_GE(frontier_.passed(tag), freed);
  }
}

TEST_F(FrontierTest, MoreThan255StreamsShareTagsOneAfterTheOther) {
  std::set<StreamTag> tags;
  for (std::uint64_t stream = 0; stream < Frontier::kMaxTags; ++stream) {
    tags.insert(*frontier_.TagOf(StreamId{stream}));
  }
  EXPECT_EQ(tags.size(), std::size_t{Frontier::kMaxTags});
  EXPECT_EQ(tags.count(kCleanTag), 0u);
  EXPECT_FALSE(frontier_.TagOf(StreamId{1000}).has_value());
  EXPECT_TRUE(frontier_.TagOf(StreamId{3}).has_value()) << "known streams keep theirs";

  const StreamTag old = *frontier_.TagOf(StreamId{3});
  const Epoch before = frontier_.NoteFree(old);
  ASSERT_TRUE(frontier_.Wait(old).ok());
  frontier_.Retire(old);
  EXPECT_EQ(*frontier_.TagOf(StreamId{1000}), old);
  EXPECT_FALSE(frontier_.TagOf(StreamId{3}).has_value());
  EXPECT_GT(frontier_.NoteFree(old), before) << "epochs of the tag go on";
}

TEST_F(FrontierTest, ARetiredTagIsNotRemembered) {
  const StreamTag tag = *frontier_.TagOf(kStream);
  ASSERT_EQ(frontier_.LastTagIf(kStream), tag);
  frontier_.Retire(tag);
  EXPECT_EQ(frontier_.LastTagIf(kStream), kCleanTag);
}

}  // namespace
}  // namespace thimble
