// Nothing lost: 5e6 random operations over 16 seeds.
#include "tests/model/walk.h"

namespace thimble {
namespace {

class RandomOperations : public testing::TestWithParam<std::uint64_t> {};

INSTANTIATE_TEST_SUITE_P(Seeds, RandomOperations, testing::Range<std::uint64_t>(0, 16));

TEST_P(RandomOperations, EveryAnswerAndEveryByteIsTheOracles) {
  constexpr std::uint64_t kOperations = 312'500;
  const Plan plan = MakePlan(GetParam());
  RandomWalk walk(plan, Pace{});
  ASSERT_NO_FATAL_FAILURE(walk.Run(kOperations));
  ASSERT_NO_FATAL_FAILURE(walk.Finish());
  const RandomWalk::Tally& tally = walk.tally();
  EXPECT_GT(tally.allocations, kOperations / 4) << "the walk has become too easy";
  EXPECT_GT(tally.refusals, 100u);
  EXPECT_GT(tally.bad_frees, 500u);
  EXPECT_GT(tally.trims, 100u);
  EXPECT_GT(tally.trimmed_bytes, plan.arena.limit);
  EXPECT_EQ(tally.holds > 100, plan.hold_streams);
  EXPECT_EQ(tally.stitched > 0, plan.arena.stitch) << plan;
}

}  // namespace
}  // namespace thimble
