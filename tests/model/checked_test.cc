// A shorter walk with all checks after every operation, and a walk that runs twice.
#include "tests/effort.h"
#include "tests/model/walk.h"

namespace thimble {
namespace {

class CheckedOperations : public testing::TestWithParam<std::uint64_t> {};

// Other seeds than in random_test.cc.
INSTANTIATE_TEST_SUITE_P(Seeds, CheckedOperations,
                         testing::Range<std::uint64_t>(16, 16 + Effort(16)));

TEST_P(CheckedOperations, EveryInvariantHoldsAfterEveryOperation) {
  constexpr std::uint64_t kOperations = 6'000;
  Pace pace;
  pace.stats = pace.invariants = 1;
  pace.physical = 16;
  RandomWalk walk(MakePlan(GetParam()), pace);
  ASSERT_NO_FATAL_FAILURE(walk.Run(kOperations));
  ASSERT_NO_FATAL_FAILURE(walk.Finish());
  EXPECT_GT(walk.tally().allocations, kOperations / 5);
}

TEST_P(CheckedOperations, TheSameSeedGivesTheSameAddresses) {
  constexpr std::uint64_t kOperations = 6'000;
  Plan plan = MakePlan(GetParam());
  plan.arena.plan = false;  // when a plan is ready depends on the clock
  const auto digest = [&] {
    RandomWalk walk(plan, Pace{});
    walk.Run(kOperations);
    return walk.digest();
  };
  const std::uint64_t first = digest();
  EXPECT_NE(first, 0u);
  EXPECT_EQ(digest(), first) << plan;
  EXPECT_EQ(digest(), first) << plan;
}

}  // namespace
}  // namespace thimble
