#include "allocator/plan/validator.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thimble::plan {
namespace {

using ::testing::HasSubstr;

TEST(PlanValidator, SharingIsFineOnceABufferHasEnded) {
  const Problem problem = {{{0, 5, 10}, {5, 9, 10}, {3, 7, 4}}};
  EXPECT_TRUE(ValidatePlan(problem, {{0, 0, 10}, 14, 14}).ok());
}

TEST(PlanValidator, NamesTheTwoThatOverlap) {
  const Problem problem = {{{0, 5, 10}, {0, 9, 10}, {4, 7, 4}}};
  EXPECT_EQ(ValidatePlan(problem, {{0, 10, 5}, 20, 0}).message(),
            "buffers 0 and 2 overlap: [5, 9) and [0, 10)");
  EXPECT_THAT(ValidatePlan(problem, {{0, 10, 19}, 23, 0}).message(),
              HasSubstr("buffers 1 and 2 overlap"));
  EXPECT_THAT(ValidatePlan(problem, {{0, 9, 20}, 24, 0}).message(),
              HasSubstr("buffers 0 and 1 overlap"));
  EXPECT_THAT(ValidatePlan(problem, {{3, 3, 20}, 24, 0}).message(),
              HasSubstr("buffers 0 and 1 overlap"));
}

TEST(PlanValidator, OneInsideAnotherOverlaps) {
  const Problem problem = {{{0, 5, 100}, {1, 2, 1}}};
  EXPECT_FALSE(ValidatePlan(problem, {{0, 50}, 100, 0}).ok());
  EXPECT_FALSE(ValidatePlan({{{0, 5, 1}, {1, 2, 100}}}, {{50, 0}, 100, 0}).ok());
}

TEST(PlanValidator, WantsEveryOffsetAndTheRightHeight) {
  const Problem problem = {{{0, 5, 10}, {5, 9, 10}}};
  EXPECT_EQ(ValidatePlan(problem, {{0}, 10, 0}).message(), "1 offsets for 2 buffers");
  EXPECT_EQ(ValidatePlan(problem, {{0, -1}, 10, 0}).message(), "buffer 1 has offset -1");
  EXPECT_EQ(ValidatePlan(problem, {{0, 1}, 10, 0}).message(),
            "the plan is 11 high, but claims to be 10");
}

TEST(PlanValidator, ChecksConflictsAlignmentAndFixedBuffers) {
  ConflictProblem problem;
  problem.sizes = {512, 256, 256};
  problem.conflicts = Conflicts(3);
  problem.conflicts.Add(0, 2);
  EXPECT_TRUE(ValidatePlan(problem, {{0, 0, 512}, 768, 0}).ok());
  EXPECT_EQ(ValidatePlan(problem, {{0, 0, 256}, 512, 0}).message(),
            "buffers 0 and 2 overlap: [256, 512) and [0, 512)");
  EXPECT_EQ(ValidatePlan(problem, {{0, 10, 512}, 768, 0}).message(),
            "buffer 1 has offset 10, not a multiple of 256");
  problem.fixed = {kNotFixed, 512, kNotFixed};
  EXPECT_EQ(ValidatePlan(problem, {{0, 0, 512}, 768, 0}).message(),
            "buffer 1 is fixed at 512, but has offset 0");
}

}  // namespace
}  // namespace thimble::plan
