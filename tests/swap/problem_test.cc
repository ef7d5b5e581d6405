// A problem that can be planned, and every way to spoil it.
#include "allocator/offline/schedule/problem.h"

#include <functional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/swap/problems.h"

namespace thimble::schedule {
namespace {

using ::testing::HasSubstr;

// Four ops. The weight is there in every step; the activation is freed before op 3.
Problem Good() {
  Problem problem = ProblemOf({10 * kMiB, 20 * kMiB, 20 * kMiB, 10 * kMiB}, kMs);
  problem.ops[2].waiting_bytes = 20 * kMiB;
  problem.blocks.resize(2);
  problem.blocks[0].bytes = kLeastBytes;
  problem.blocks[0].touches = {0, 3};
  problem.blocks[0].is_cyclic = true;
  problem.blocks[1].bytes = 8 * kMiB;
  problem.blocks[1].touches = {1, 2};
  problem.blocks[1].dies = 3;
  return problem;
}

TEST(SwapProblemCheck, AcceptsAGoodProblem) { EXPECT_EQ(CheckProblem(Good()), absl::OkStatus()); }

TEST(SwapProblemCheck, AcceptsEveryValueAtItsLimit) {
  Problem problem = Good();
  problem.ops[0].ns = kMaxStepNs - 3 * kMs;
  problem.ops[0].live_bytes = kMaxBytes;
  problem.ops[3].waiting_bytes = 10 * kMiB;
  problem.blocks[0].bytes = kMaxBytes;
  problem.blocks[1].touches = {3, 7};
  problem.blocks[1].dies = 8;
  EXPECT_EQ(CheckProblem(problem), absl::OkStatus());
}

struct Flaw {
  const char* name;
  std::function<void(Problem&)> spoil;
  const char* words;
};

class SwapProblemCheckRefuses : public ::testing::TestWithParam<Flaw> {};

TEST_P(SwapProblemCheckRefuses, InWords) {
  Problem problem = Good();
  GetParam().spoil(problem);
  const absl::Status status = CheckProblem(problem);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().words));
}

INSTANTIATE_TEST_SUITE_P(
    Flaws, SwapProblemCheckRefuses,
    ::testing::Values(
        Flaw{"NoOps", [](Problem& p) { p.ops.clear(); }, "the step has no ops"},
        Flaw{"TooManyOps", [](Problem& p) { p.ops.resize(kMaxOps + 1); },
             "the step has 1048577 ops, more than 1048576"},
        Flaw{"OpBackwards", [](Problem& p) { p.ops[1].ns = -1; }, "op 'op1' takes -1 ns"},
        Flaw{"StepTooLong", [](Problem& p) { p.ops[0].ns = kMaxStepNs - 3 * kMs + 1; },
             "op 'op3' takes 1000000 ns: the step is too long"},
        Flaw{"LessThanNothingLive", [](Problem& p) { p.ops[0].live_bytes = -1; },
             "op 'op0' has -1 bytes live"},
        Flaw{"TooMuchLive", [](Problem& p) { p.ops[1].live_bytes = kMaxBytes + 1; },
             "op 'op1' has 70368744177665 bytes live"},
        Flaw{"WaitsWithLessThanNothing", [](Problem& p) { p.ops[1].waiting_bytes = -1; },
             "op 'op1' waits with -1 bytes"},
        Flaw{"WaitsWithMoreThanItHas", [](Problem& p) { p.ops[3].waiting_bytes = 10 * kMiB + 1; },
             "op 'op3' waits with 10485761 bytes"},
        Flaw{"WaitsWithMoreThanTheOneBefore",
             [](Problem& p) { p.ops[1].waiting_bytes = 10 * kMiB + 1; }, "the one before has live"},
        Flaw{"NoTime",
             [](Problem& p) {
               for (Op& op : p.ops) op.ns = 0;
             },
             "take no time"},
        Flaw{"SmallBlock", [](Problem& p) { p.blocks[0].bytes = kLeastBytes - 1; },
             "block 0 has 1048575 bytes"},
        Flaw{"LargeBlock", [](Problem& p) { p.blocks[1].bytes = kMaxBytes + 1; },
             "block 1 has 70368744177665 bytes"},
        Flaw{"Untouched", [](Problem& p) { p.blocks[1].touches.clear(); },
             "block 1 is never touched"},
        Flaw{"TouchedTwiceByAnOp",
             [](Problem& p) {
               p.blocks[1].touches = {2, 2};
             },
             "block 1 has touches that are not ascending"},
        Flaw{"TouchedBeforeTheStep",
             [](Problem& p) {
               p.blocks[1].touches = {-1, 2};
             },
             "not ascending"},
        Flaw{"FirstTouchedInTheNextStep", [](Problem& p) { p.blocks[1].touches = {4}; },
             "block 1 is touched by op 4 of 4"},
        Flaw{"TouchedInTheStepAfterTheNext",
             [](Problem& p) {
               p.blocks[1].touches = {3, 8};
             },
             "block 1 is touched by op 8 of 4"},
        Flaw{"CyclicAndTouchedInTheNextStep",
             [](Problem& p) {
               p.blocks[0].touches = {0, 4};
             },
             "block 0 is touched by op 4 of 4"},
        Flaw{"CyclicAndFreed", [](Problem& p) { p.blocks[0].dies = 4; },
             "block 0 dies before op 4"},
        Flaw{"FreedWhenItIsTouched", [](Problem& p) { p.blocks[1].dies = 2; },
             "block 1 dies before op 2"},
        Flaw{"FreedTooLate", [](Problem& p) { p.blocks[1].dies = 9; }, "block 1 dies before op 9"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(SwapProblemCheck, TheStepIsTheSumOfItsOpsAndThePeakTheMost) {
  EXPECT_EQ(StepNs(Good()), 4 * kMs);
  EXPECT_EQ(PeakBytes(Good()), 20 * kMiB);
}

}  // namespace
}  // namespace thimble::schedule
