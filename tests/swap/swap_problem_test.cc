// Problems made of traces with accesses.
#include "allocator/offline/schedule/swap_problem.h"

#include <string>

#include "absl/strings/str_replace.h"
#include "allocator/offline/schedule/planner.h"
#include "allocator/offline/schedule/validator.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/swap/problems.h"

namespace thimble {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// 'M' stands for a MiB.
absl::StatusOr<schedule::Problem> ProblemOf(const std::string& text) {
  const auto trace = ParseTrace(absl::StrReplaceAll(text, {{"M", "000000"}}), "t.trace");
  EXPECT_TRUE(trace.ok()) << trace.status();
  return SwapProblemFromTrace(*trace, "t.trace");
}

schedule::Problem GoodProblemOf(const std::string& text) {
  const absl::StatusOr<schedule::Problem> problem = ProblemOf(text);
  EXPECT_TRUE(problem.ok()) << problem.status();
  return *problem;
}

TEST(SwapProblem, TakesTheLastStepBetweenTwoMarks) {
  const schedule::Problem problem = GoodProblemOf(
      "A 1 2M\n"
      "S\nO first 1 r:1 w:\n"
      "S\nO second 2 r:1 w:\nO second 3 r:1 w:\n"
      "S\nO cut 4 r:1 w:\n");
  ASSERT_THAT(problem.ops, SizeIs(2));
  EXPECT_EQ(problem.ops[0].name, "second");
  EXPECT_EQ(problem.ops[0].occurrence, 0);
  EXPECT_EQ(problem.ops[1].occurrence, 1);
  EXPECT_EQ(problem.ops[1].ns, 3000000000);
}

TEST(SwapProblem, MarksWithoutAccessesAreNoSteps) {
  EXPECT_EQ(GoodProblemOf("S\nO a 1 r: w:\nS\nS\nS\n").ops[0].name, "a");
  EXPECT_EQ(GoodProblemOf("O a 1 r: w:\nS\nO b 1 r: w:\n").ops[0].name, "b");
  EXPECT_EQ(GoodProblemOf("O a 1 r: w:\nS\n").ops[0].name, "a");
}

TEST(SwapProblem, WithoutMarksTheWholeTraceFromItsFirstAccessOnIsTheStep) {
  const schedule::Problem problem =
      GoodProblemOf("A 1 2M\nO a 1 r:1 w:\nA 2 3M\nO b 1 r: w:2\nF 2\nO c 1 r:1 w:\n");
  ASSERT_THAT(problem.ops, SizeIs(3));
  ASSERT_THAT(problem.blocks, SizeIs(2));
  EXPECT_TRUE(problem.blocks[0].is_cyclic);
  EXPECT_THAT(problem.blocks[0].touches, ElementsAre(0, 2));
  EXPECT_FALSE(problem.blocks[1].is_cyclic);
  EXPECT_THAT(problem.blocks[1].touches, ElementsAre(1));
  EXPECT_EQ(problem.blocks[1].dies, 2);
}

// Blocks that an op frees are gone before the next op allocates; blocks that it allocates are live
// while it runs.
TEST(SwapProblem, AnOpHasTheBytesLiveWhileItRuns) {
  const schedule::Problem problem = GoodProblemOf(
      "A 1 10M\nS\n"
      "A 2 4M\nA 3 1M\nF 3\nO a 1 r:1 w:2\n"
      "F 2\nA 4 2M\nO b 1 r: w:4\n"
      "F 4\nO c 1 r:1 w:\nS\n");
  ASSERT_THAT(problem.ops, SizeIs(3));
  EXPECT_EQ(problem.ops[0].live_bytes, 15000000);
  EXPECT_EQ(problem.ops[0].waiting_bytes, 10000000);
  EXPECT_EQ(problem.ops[1].live_bytes, 12000000);
  EXPECT_EQ(problem.ops[1].waiting_bytes, 10000000);
  EXPECT_EQ(problem.ops[2].live_bytes, 10000000);
  EXPECT_EQ(schedule::PeakBytes(problem), 15000000);
}

TEST(SwapProblem, EventsAfterTheLastAccessBelongToTheFirstOp) {
  const schedule::Problem problem =
      GoodProblemOf("A 1 10M\nS\nO a 1 r:1 w:\nO b 1 r:1 w:\nA 2 9M\nF 2\nS\n");
  EXPECT_EQ(problem.ops[0].live_bytes, 19000000);
  EXPECT_EQ(problem.ops[1].live_bytes, 10000000);
}

TEST(SwapProblem, ABatchThatIsFreedInTheNextStepIsOneBlock) {
  const schedule::Problem problem = GoodProblemOf(
      "A 1 4M\nO copy 1 r: w:1\n"
      "S\nO use 1 r:1 w:\nA 2 4M\nO copy 1 r: w:2\nF 1\nO rest 1 r: w:\n"
      "S\nO use 1 r:2 w:\nA 3 4M\nO copy 1 r: w:3\nF 2\nO rest 1 r: w:\n"
      "S\n");
  ASSERT_THAT(problem.blocks, SizeIs(1));
  EXPECT_THAT(problem.blocks[0].touches, ElementsAre(1, 3));  // copy, and use in the next step
  EXPECT_EQ(problem.blocks[0].dies, 5);
  EXPECT_FALSE(problem.blocks[0].is_cyclic);
}

// Of equal size, but first touched by different ops.
TEST(SwapProblem, TwoBatchesAreNotMistakenForEachOther) {
  const schedule::Problem problem = GoodProblemOf(
      "A 1 4M\nO x 1 r: w:1\nA 2 4M\nO y 1 r: w:2\n"
      "S\nO use 1 r:1 w:\nF 1\nO use 1 r:2 w:\nF 2\n"
      "A 4 4M\nO y 1 r: w:4\nA 3 4M\nO x 1 r: w:3\n"
      "S\nO use 1 r:3 w:\nF 3\nO use 1 r:4 w:\nF 4\n"
      "A 6 4M\nO y 1 r: w:6\nA 5 4M\nO x 1 r: w:5\n"
      "S\n");
  ASSERT_THAT(problem.blocks, SizeIs(2));
  EXPECT_THAT(problem.blocks[0].touches, ElementsAre(2, 5));  // y, and the second use
  EXPECT_THAT(problem.blocks[1].touches, ElementsAre(3, 4));  // x, and the first
}

TEST(SwapProblem, ABlockWithoutACounterpartStaysInItsStep) {
  const schedule::Problem problem = GoodProblemOf(
      "A 1 4M\nO x 1 r: w:1\n"
      "S\nO a 1 r:1 w:\nO b 1 r:1 w:\nF 1\nA 2 8M\nO c 1 r: w:2\nO d 1 r:2 w:\n"
      "S\n");
  ASSERT_THAT(problem.blocks, SizeIs(2));
  EXPECT_THAT(problem.blocks[0].touches, ElementsAre(0, 1));
  EXPECT_EQ(problem.blocks[0].dies, 2);
  EXPECT_THAT(problem.blocks[1].touches, ElementsAre(2, 3));
  EXPECT_EQ(problem.blocks[1].dies, schedule::Block::kLives);
}

TEST(SwapProblem, SmallBlocksAndBlocksWithoutAnAccessNeverLeave) {
  EXPECT_THAT(GoodProblemOf("A 1 1048575\nA 2 9M\nS\nO a 1 r:1 w:\nO b 1 r: w:\nS\n").blocks,
              IsEmpty());
  EXPECT_THAT(GoodProblemOf("A 1 1048576\nS\nO a 1 r:1 w:\nO b 1 r: w:\nS\n").blocks, SizeIs(1));
}

TEST(SwapProblem, NamesWhatIsMissing) {
  EXPECT_THAT(std::string(ProblemOf("A 1 8\n").status().message()),
              HasSubstr("'t.trace' has no O lines"));
  EXPECT_THAT(std::string(ProblemOf("O a 0 r: w:\n").status().message()),
              HasSubstr("'t.trace': the ops of the step take no time"));
  EXPECT_THAT(std::string(ProblemOf("A 1 99999999999999\nO a 1 r: w:\n").status().message()),
              HasSubstr("more than 2^46"));
}

TEST(SwapProblem, ATrainingStepIsPlannedAndLowered) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    const auto trace = ParseTrace(schedule::TrainingTrace(/*layers=*/30, /*steps=*/3, seed), "t");
    ASSERT_TRUE(trace.ok()) << trace.status();
    const absl::StatusOr<schedule::Problem> problem = SwapProblemFromTrace(*trace, "t");
    ASSERT_TRUE(problem.ok()) << problem.status();
    EXPECT_EQ(schedule::PeakBytes(*problem), static_cast<std::int64_t>(trace->max_live_bytes));
    const absl::StatusOr<schedule::Schedule> plan =
        schedule::PlanSwaps(*problem, {}, {}, {/*max_work=*/3'000'000});
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(schedule::ValidateSchedule(*problem, {}, *plan), absl::OkStatus());
    EXPECT_LT(plan->peak_bytes, schedule::PeakBytes(*problem) * 9 / 10);
  }
}

TEST(SwapProblem, KnowsTheBusIfEnoughWasCopied) {
  Trace trace = *ParseTrace("A 0 2000000\nO a 0.001 r: w:0\nF 0\n", "trace");
  trace.copied = {100 * kMiB, kMiB, 50000000, 1000};
  const schedule::Bus measured = SwapProblemFromTrace(trace, "trace")->measured;
  EXPECT_EQ(measured.out, 2097152000);
  EXPECT_EQ(measured.in, 0);
}

}  // namespace
}  // namespace thimble
