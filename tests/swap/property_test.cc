// Properties that hold for every problem, machine and goal, checked on random ones.
#include <optional>

#include "allocator/offline/schedule/autoswap.h"
#include "allocator/offline/schedule/planner.h"
#include "allocator/offline/schedule/schedule_csv.h"
#include "allocator/offline/schedule/validator.h"
#include "gtest/gtest.h"
#include "tests/effort.h"
#include "tests/swap/problems.h"

namespace thimble::schedule {
namespace {

// The properties hold whatever work is left.
constexpr PlanOptions kShort = {/*max_work=*/3000000};

Machine RandomMachine(workloads::Random& random) {
  Machine machine;
  machine.out_bytes_per_second = static_cast<std::int64_t>(random.LogUniform(1000000000, 1 << 30));
  machine.out_bytes_per_second *= static_cast<std::int64_t>(1 + random.Index(60));
  machine.in_bytes_per_second = machine.out_bytes_per_second / 2 * (1 + random.Index(3));
  machine.run_ahead_ns = random.Index(3) == 0 ? static_cast<Ns>(random.Index(3 * kMs)) : 0;
  return machine;
}

class SwapProperties : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  workloads::Random random_{GetParam()};
};

TEST_P(SwapProperties, ScoresAndPlansAreValidAndAPlanIsNeverWorse) {
  for (int round = 0; round < 100; ++round) {
    SCOPED_TRACE(round);
    const Problem problem = RandomProblem(random_);
    ASSERT_EQ(CheckProblem(problem), absl::OkStatus());
    const Machine machine = RandomMachine(random_);
    const absl::StatusOr<Schedule> plan = PlanSwaps(problem, machine, {}, kShort);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(ValidateSchedule(problem, machine, *plan), absl::OkStatus());
    EXPECT_EQ(SlowdownOf(problem, *plan), 0);
    for (const Score score : kScores) {
      const Schedule schedule = PlanAutoSwap(score, problem, machine, 0);
      EXPECT_EQ(ValidateSchedule(problem, machine, schedule), absl::OkStatus()) << NameOf(score);
      EXPECT_LE(plan->peak_bytes, schedule.peak_bytes) << NameOf(score);
    }
  }
}

TEST_P(SwapProperties, ASlowdownIsKeptAndMoreOfItNeverRaisesThePeak) {
  for (int round = 0; round < 30; ++round) {
    SCOPED_TRACE(round);
    const Problem problem = RandomProblem(random_);
    const Machine machine = RandomMachine(random_);
    const Schedule without = *PlanSwaps(problem, machine, {}, kShort);
    Goal goal;
    goal.slowdown = static_cast<std::int64_t>(1 + random_.Index(kMillion));
    const absl::StatusOr<Schedule> with = PlanSwaps(problem, machine, goal, kShort);
    ASSERT_TRUE(with.ok()) << with.status();
    EXPECT_EQ(ValidateSchedule(problem, machine, *with), absl::OkStatus());
    EXPECT_LE(SlowdownOf(problem, *with), goal.slowdown);
    EXPECT_LE(with->peak_bytes, without.peak_bytes);
  }
}

TEST_P(SwapProperties, ALimitIsKeptOrRefused) {
  int kept = 0;
  for (int round = 0; round < 30; ++round) {
    SCOPED_TRACE(round);
    const Problem problem = RandomProblem(random_);
    const Machine machine = RandomMachine(random_);
    Goal goal;
    goal.limit = PeakBytes(problem) * static_cast<std::int64_t>(50 + random_.Index(50)) / 100;
    const absl::StatusOr<Schedule> plan = PlanSwaps(problem, machine, goal, kShort);
    if (!plan.ok()) {
      EXPECT_EQ(plan.status().code(), absl::StatusCode::kResourceExhausted);
      continue;
    }
    ++kept;
    EXPECT_EQ(ValidateSchedule(problem, machine, *plan), absl::OkStatus());
    EXPECT_LE(plan->peak_bytes, goal.limit);
  }
  EXPECT_GT(kept, 5);
}

TEST_P(SwapProperties, TheSameInputGivesTheSameSchedule) {
  for (int round = 0; round < 20; ++round) {
    const Problem problem = RandomProblem(random_);
    const Machine machine = RandomMachine(random_);
    Goal goal;
    goal.slowdown = 50000;
    EXPECT_EQ(ScheduleText(problem, *PlanSwaps(problem, machine, goal, kShort)),
              ScheduleText(problem, *PlanSwaps(problem, machine, goal, kShort)));
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, SwapProperties, ::testing::Range<std::uint64_t>(1, 1 + Effort(8)));

}  // namespace
}  // namespace thimble::schedule
