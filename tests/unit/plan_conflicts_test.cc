#include <cstdint>

#include "allocator/plan/solver.h"
#include "allocator/plan/validator.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/plan/problems.h"

namespace thimble::plan {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kAlignment = 256;

SolveOptions WithWork(std::uint64_t work) {
  SolveOptions options;
  options.seconds = 3600;
  options.max_work = work;
  return options;
}

// Every fifth buffer stays where a plan once put it.
void FixSome(ConflictProblem& problem, const Plan& plan, Random& random) {
  problem.fixed.assign(problem.sizes.size(), kNotFixed);
  for (std::size_t i = 0; i < problem.sizes.size(); ++i) {
    if (random.OneIn(5)) problem.fixed[i] = plan.offsets[i];
  }
}

// Fixed buffers of one byte, in conflict with everything, and between them gaps that are cut up
// without a rest: all of it fits below the lower bound, if every piece finds the gap it is from.
ConflictProblem WalledProblem(int gaps, std::int32_t pieces_per_gap, Random& random) {
  constexpr std::int64_t kEver = std::int64_t{1} << 20;
  Problem lifetimes;
  std::vector<std::int64_t> walls;
  std::int64_t top = 0;
  for (int k = 0; k < gaps; ++k) {
    const std::int64_t gap = 128 + random.Below(256);
    const Problem pieces = CutProblem(pieces_per_gap, gap, random);
    lifetimes.buffers.insert(lifetimes.buffers.end(), pieces.buffers.begin(), pieces.buffers.end());
    walls.push_back(top + gap);
    top += gap + 1;
  }
  lifetimes.buffers.insert(lifetimes.buffers.end(), walls.size(), {0, kEver, 1});
  ConflictProblem problem = AsConflicts(lifetimes, 1);
  problem.fixed.assign(problem.sizes.size() - walls.size(), kNotFixed);
  problem.fixed.insert(problem.fixed.end(), walls.begin(), walls.end());
  problem.lower_bound = top;
  return problem;
}

TEST(PlanConflicts, RandomProblemsGetSoundPlansWithAndWithoutFixedBuffers) {
  Random random(1);
  for (int round = 0; round < 500; ++round) {
    const std::int32_t count = 1 + static_cast<std::int32_t>(random.Below(150));
    ConflictProblem problem =
        AsConflicts(RandomProblem(count, 1 + random.Below(80), 1 << 16, random), kAlignment);
    ASSERT_TRUE(CheckConflictProblem(problem).ok());
    const Plan free = SolveConflicts(problem, WithWork(300000));
    absl::Status status = ValidatePlan(problem, free);
    ASSERT_TRUE(status.ok()) << status;
    FixSome(problem, free, random);
    ASSERT_TRUE(CheckConflictProblem(problem).ok());
    status = ValidatePlan(problem, SolveConflicts(problem, WithWork(300000)));
    ASSERT_TRUE(status.ok()) << status;
  }
}

TEST(PlanConflicts, IsAsGoodAsWithLifetimes) {
  Random random(2);
  const Problem lifetimes = TrainingProblem(1500, random);
  ConflictProblem problem = AsConflicts(lifetimes, 1);
  problem.lower_bound = MaxLive(lifetimes);
  const Plan plan = SolveConflicts(problem, WithWork(50000000));
  const absl::Status status = ValidatePlan(problem, plan);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(plan.lower_bound, problem.lower_bound);
  EXPECT_LE(plan.height, plan.lower_bound + plan.lower_bound / 50);
}

// No lifetimes can express a ring of five conflicts.
TEST(PlanConflicts, NeedNotComeFromLifetimes) {
  ConflictProblem problem;
  problem.sizes.assign(5, kAlignment);
  problem.conflicts = Conflicts(5);
  for (std::int32_t i = 0; i < 5; ++i) problem.conflicts.Add(i, (i + 1) % 5);
  const Plan plan = SolveConflicts(problem, WithWork(1000000));
  EXPECT_TRUE(ValidatePlan(problem, plan).ok());
  EXPECT_EQ(plan.height, 3 * kAlignment);
}

TEST(PlanConflicts, OthersGoAroundFixedBuffers) {
  ConflictProblem problem;
  problem.sizes = {512, 256, 512};
  problem.fixed = {256, kNotFixed, kNotFixed};
  problem.conflicts = Conflicts(3);
  problem.conflicts.Add(0, 1);
  problem.conflicts.Add(0, 2);
  problem.conflicts.Add(1, 2);
  const Plan plan = SolveConflicts(problem, WithWork(1000000));
  EXPECT_EQ(plan.offsets, (std::vector<std::int64_t>{256, 0, 768}));
  EXPECT_EQ(plan.height, 1280);
}

// A single pass is a third too high.
TEST(PlanConflicts, PiecesFindTheirGapsBetweenWalls) {
  std::int64_t heights = 0;
  std::int64_t bounds = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Random random(seed);
    const ConflictProblem problem = WalledProblem(4, 12, random);
    ASSERT_TRUE(CheckConflictProblem(problem).ok());
    const Plan plan = SolveConflicts(problem, WithWork(8000000));
    const absl::Status status = ValidatePlan(problem, plan);
    ASSERT_TRUE(status.ok()) << status;
    heights += plan.height;
    bounds += problem.lower_bound;
  }
  EXPECT_LE(heights, bounds + bounds / 25);
}

TEST(PlanConflicts, SameWorkGivesTheSamePlanAndMoreNeverAWorseOne) {
  Random random(3);
  const ConflictProblem problem = AsConflicts(CutProblem(200, 1 << 20, random), kAlignment);
  std::int64_t height = SolveConflicts(problem, WithWork(1)).height;
  for (std::uint64_t work = 10000; work < 20000000; work *= 3) {
    const Plan plan = SolveConflicts(problem, WithWork(work));
    EXPECT_EQ(SolveConflicts(problem, WithWork(work)).offsets, plan.offsets);
    EXPECT_LE(plan.height, height);
    height = plan.height;
  }
}

TEST(PlanConflicts, ProblemsThatAreWrongAreNamed) {
  ConflictProblem problem;
  problem.sizes = {512, 512};
  problem.conflicts = Conflicts(2);
  problem.conflicts.Add(0, 1);
  const auto error = [&] { return std::string(CheckConflictProblem(problem).message()); };
  EXPECT_EQ(error(), "");
  problem.fixed = {0};
  EXPECT_EQ(error(), "1 fixed offsets for 2 buffers: give each one");
  problem.fixed = {0, 256};
  EXPECT_EQ(error(),
            "buffer 1 has the fixed offset 256: it overlaps buffer 0, with which it conflicts");
  problem.fixed = {kNotFixed, 100};
  EXPECT_THAT(error(),
              HasSubstr("buffer 1 has the fixed offset 100: it must be a multiple of 256"));
  problem.fixed = {};
  problem.sizes[1] = 100;
  EXPECT_EQ(error(), "buffer 1 has size 100: it must be a multiple of 256");
  problem.sizes[1] = 0;
  EXPECT_EQ(error(), "buffer 1 has size 0: it must be from 1 to 2^46");
  problem.alignment = 0;
  EXPECT_EQ(error(), "alignment 0 is not from 1 to 2^46");
}

}  // namespace
}  // namespace thimble::plan
