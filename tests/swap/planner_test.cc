#include "allocator/offline/schedule/planner.h"

#include "allocator/offline/schedule/autoswap.h"
#include "allocator/offline/schedule/schedule_csv.h"
#include "allocator/offline/schedule/validator.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/swap/problems.h"

namespace thimble::schedule {
namespace {

using ::testing::HasSubstr;

// A MiB takes a millisecond.
Machine SlowMachine() {
  Machine machine;
  machine.out_bytes_per_second = machine.in_bytes_per_second = kMiB * 1000;
  machine.out_latency_ns = machine.in_latency_ns = 0;
  return machine;
}

Block BlockOf(std::int64_t mib, std::vector<std::int32_t> touches, std::int32_t dies) {
  Block block;
  block.bytes = mib * kMiB;
  block.touches = std::move(touches);
  block.dies = dies;
  return block;
}

Schedule PlanOf(const Problem& problem, const Goal& goal) {
  EXPECT_EQ(CheckProblem(problem), absl::OkStatus());
  const absl::StatusOr<Schedule> schedule = PlanSwaps(problem, SlowMachine(), goal);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_EQ(ValidateSchedule(problem, SlowMachine(), *schedule), absl::OkStatus());
  return *schedule;
}

std::int64_t BestScore(const Problem& problem) {
  std::int64_t best = PeakBytes(problem);
  for (const Score score : kScores) {
    best = std::min(best, PlanAutoSwap(score, problem, SlowMachine(), 0).peak_bytes);
  }
  return best;
}

TEST(SwapPlanner, WithoutBlocksNothingChanges) {
  const Problem problem = ProblemOf({10 * kMiB, 30 * kMiB, 10 * kMiB}, 10 * kMs);
  const Schedule schedule = PlanOf(problem, {});
  EXPECT_TRUE(schedule.swaps.empty());
  EXPECT_EQ(schedule.peak_bytes, 30 * kMiB);
  EXPECT_EQ(SlowdownOf(problem, schedule), 0);
}

// Out as early as possible, in as late as possible.
TEST(SwapPlanner, AnActivationIsGoneAtThePeak) {
  Problem problem = ProblemOf({10 * kMiB, 20 * kMiB, 30 * kMiB, 20 * kMiB, 10 * kMiB}, 10 * kMs);
  problem.blocks = {BlockOf(8, {0, 4}, 5)};
  const Schedule schedule = PlanOf(problem, {});
  EXPECT_EQ(schedule.peak_bytes, 22 * kMiB);
  ASSERT_EQ(schedule.swaps.size(), 1u);
  EXPECT_EQ(schedule.swaps[0].out_ns, 10 * kMs);
  EXPECT_EQ(schedule.swaps[0].in_ns, 32 * kMs);
  EXPECT_EQ(schedule.swaps[0].gone_from, 2);
  EXPECT_EQ(schedule.swaps[0].gone_until, 3);
}

// Its only long window is from the end of one step into the next.
TEST(SwapPlanner, AWeightIsGoneFromOneStepToTheNext) {
  Problem problem = ProblemOf({40 * kMiB, 20 * kMiB, 20 * kMiB, 20 * kMiB, 20 * kMiB}, 10 * kMs);
  Block weight = BlockOf(10, {2, 3}, Block::kLives);
  weight.is_cyclic = true;
  problem.blocks = {weight};
  const Schedule schedule = PlanOf(problem, {});
  EXPECT_EQ(schedule.peak_bytes, 30 * kMiB);
  ASSERT_EQ(schedule.swaps.size(), 1u);
  EXPECT_EQ(schedule.swaps[0].after, 3);
  EXPECT_EQ(schedule.swaps[0].before, 7);
}

// One peak before the touch in the middle, and one after it.
TEST(SwapPlanner, ABlockLeavesInEveryWindowThatHelps) {
  Problem problem = ProblemOf({10 * kMiB, 10 * kMiB, 30 * kMiB, 10 * kMiB, 10 * kMiB, 10 * kMiB,
                               30 * kMiB, 10 * kMiB, 10 * kMiB},
                              10 * kMs);
  problem.blocks = {BlockOf(8, {0, 4, 8}, 9)};
  EXPECT_EQ(PlanOf(problem, {}).peak_bytes, 22 * kMiB);
  EXPECT_EQ(PlanOf(problem, {}).swaps.size(), 2u);
  EXPECT_EQ(BestScore(problem), 30 * kMiB);  // they know one peak
}

TEST(SwapPlanner, ABlockThatIsNeverTouchedAgainNeedNotComeBack) {
  Problem problem = ProblemOf({20 * kMiB, 20 * kMiB, 30 * kMiB, 20 * kMiB}, 10 * kMs);
  problem.blocks = {BlockOf(8, {0}, 4)};
  const Schedule schedule = PlanOf(problem, {});
  EXPECT_EQ(schedule.peak_bytes, 22 * kMiB);
  EXPECT_EQ(schedule.bytes_out, 8 * kMiB);
  EXPECT_EQ(schedule.bytes_in, 0);
}

TEST(SwapPlanner, CopiesNoMoreThanTheLimitNeeds) {
  Problem problem =
      ProblemOf({60 * kMiB, 60 * kMiB, 60 * kMiB, 90 * kMiB, 60 * kMiB, 60 * kMiB}, 40 * kMs);
  for (int i = 0; i < 4; ++i) problem.blocks.push_back(BlockOf(10, {0, 5}, 6));
  Goal goal;
  goal.limit = 75 * kMiB;
  const Schedule schedule = PlanOf(problem, goal);
  EXPECT_EQ(schedule.bytes_out, 20 * kMiB);
  EXPECT_EQ(SlowdownOf(problem, schedule), 0);
  EXPECT_EQ(PlanOf(problem, {}).peak_bytes, 60 * kMiB);
}

// 20 MiB have 10 ms to leave: 10 ms are missing before the peak, and as many after it.
TEST(SwapPlanner, ALimitMayCostTime) {
  Problem problem = ProblemOf({20 * kMiB, 20 * kMiB, 40 * kMiB, 20 * kMiB, 20 * kMiB}, 10 * kMs);
  problem.blocks = {BlockOf(20, {0, 4}, 5)};
  EXPECT_EQ(PlanOf(problem, {}).peak_bytes, 40 * kMiB);
  Goal goal;
  goal.limit = 20 * kMiB;
  const Schedule schedule = PlanOf(problem, goal);
  EXPECT_EQ(schedule.peak_bytes, 20 * kMiB);
  EXPECT_GE(schedule.step_ns, 70 * kMs);
  EXPECT_LE(schedule.step_ns, 100 * kMs);
}

TEST(SwapPlanner, ASlowdownIsNeverExceededAndNeverHarms) {
  Problem problem = ProblemOf({20 * kMiB, 20 * kMiB, 40 * kMiB, 20 * kMiB, 20 * kMiB}, 10 * kMs);
  for (int i = 0; i < 10; ++i) problem.blocks.push_back(BlockOf(2, {0, 4}, 5));
  std::int64_t before = PeakBytes(problem);
  for (const std::int64_t slowdown : {0, 50000, 100000, 200000, 400000, 1000000}) {
    Goal goal;
    goal.slowdown = slowdown;
    const Schedule schedule = PlanOf(problem, goal);
    EXPECT_LE(SlowdownOf(problem, schedule), slowdown);
    EXPECT_LE(schedule.peak_bytes, before);
    before = schedule.peak_bytes;
  }
  EXPECT_LE(before, 22 * kMiB);
}

TEST(SwapPlanner, ALimitThatCannotBeKeptIsRefusedWithTheLowestPossible) {
  Problem problem = ProblemOf({10 * kMiB, 30 * kMiB, 10 * kMiB, 10 * kMiB}, 10 * kMs);
  problem.blocks = {BlockOf(8, {0, 3}, 4)};
  Goal goal;
  goal.limit = 21 * kMiB;
  const absl::StatusOr<Schedule> schedule = PlanSwaps(problem, SlowMachine(), goal);
  EXPECT_EQ(schedule.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(schedule.status().message()),
              HasSubstr("limit of 22020096 bytes; with every idle block on the host, 23068672"));
}

TEST(SwapPlanner, ASearchThatIsCutShortIsStillAsGoodAsTheScores) {
  workloads::Random random(11);
  for (int round = 0; round < 50; ++round) {
    const Problem problem = RandomProblem(random);
    const absl::StatusOr<Schedule> schedule = PlanSwaps(problem, SlowMachine(), {}, {1});
    ASSERT_TRUE(schedule.ok());
    EXPECT_EQ(ValidateSchedule(problem, SlowMachine(), *schedule), absl::OkStatus());
    EXPECT_LE(schedule->peak_bytes, BestScore(problem));
  }
}

TEST(SwapPlanner, TheScheduleCanBeWrittenAsText) {
  Problem problem = ProblemOf({40 * kMiB, 20 * kMiB, 20 * kMiB, 20 * kMiB, 20 * kMiB}, 10 * kMs);
  Block weight = BlockOf(10, {2, 3}, Block::kLives);
  weight.is_cyclic = true;
  weight.key = 77;
  weight.id = 5;
  problem.blocks = {weight};
  problem.ops[3].occurrence = 2;
  EXPECT_EQ(ScheduleText(problem, PlanOf(problem, {})),
            "block,key,bytes,offset,after,before,returns,gone_from,gone_until,out_ns,in_ns\n"
            "5,77,10485760,0,op3#2,op2#0+1,1,op0#0+1,op1#0+1,40000000,60000000\n");
}

}  // namespace
}  // namespace thimble::schedule
