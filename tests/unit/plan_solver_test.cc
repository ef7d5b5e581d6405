#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <thread>

#include "allocator/offline/plan/lifetime_solver.h"
#include "allocator/plan/validator.h"
#include "gtest/gtest.h"
#include "tests/plan/problems.h"

namespace thimble::plan {
namespace {

using Clock = std::chrono::steady_clock;

SolveOptions WithWork(std::uint64_t work, std::uint64_t seed = 1) {
  SolveOptions options;
  options.seconds = 3600;
  options.max_work = work;
  options.seed = seed;
  return options;
}

void ExpectSound(const Problem& problem, const Plan& plan) {
  const absl::Status status = ValidatePlan(problem, plan);
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_EQ(plan.lower_bound, MaxLive(problem));
  ASSERT_GE(plan.height, plan.lower_bound);
}

TEST(PlanSolver, FiveThousandRandomProblemsGetSoundPlans) {
  Random random(1);
  for (int round = 0; round < 5000; ++round) {
    const std::int32_t count = 1 + static_cast<std::int32_t>(random.Below(60));
    const Problem problem = round % 2 == 0 ? RandomProblem(count, 1 + random.Below(80),
                                                           1 + random.Below(1 << 16), random)
                                           : CutProblem(count, 64 + random.Below(1000), random);
    ASSERT_NO_FATAL_FAILURE(ExpectSound(problem, SolveLifetimes(problem, WithWork(40000))));
  }
}

TEST(PlanSolver, LargeProblemsOfEveryFamilyGetPlansCloseToTheBound) {
  Random random(2);
  for (const Problem& problem : {TrainingProblem(2000, random), StaggeredProblem(2000, random)}) {
    const Plan plan = SolveLifetimes(problem, WithWork(8000000));
    ASSERT_NO_FATAL_FAILURE(ExpectSound(problem, plan));
    EXPECT_LE(plan.height, plan.lower_bound + plan.lower_bound / 50);
  }
}

TEST(PlanSolver, SameSeedAndWorkGiveTheSamePlan) {
  Random random(3);
  for (const Problem& problem : {CutProblem(120, 1000, random), TrainingProblem(900, random)}) {
    const Plan plan = SolveLifetimes(problem, WithWork(1000000));
    EXPECT_EQ(SolveLifetimes(problem, WithWork(1000000)).offsets, plan.offsets);
  }
}

TEST(PlanSolver, MoreWorkNeverGivesAWorsePlan) {
  Random random(4);
  for (int round = 0; round < 4; ++round) {
    const Problem problem =
        round % 2 == 0 ? CutProblem(150, 1000, random) : StaggeredProblem(800, random);
    std::int64_t height = std::numeric_limits<std::int64_t>::max();
    for (std::uint64_t work = 1000; work <= 2000000; work = work * 2) {
      const Plan plan = SolveLifetimes(problem, WithWork(work, round));
      EXPECT_LE(plan.height, height) << work;
      height = plan.height;
    }
  }
}

TEST(PlanSolver, StopsAtItsDeadline) {
  Random random(5);
  const Problem problem = CutProblem(300, 100000, random);
  SolveOptions options;
  options.seconds = 0.2;
  const auto start = Clock::now();
  const Plan plan = SolveLifetimes(problem, options);
  ASSERT_NO_FATAL_FAILURE(ExpectSound(problem, plan));
  // Generous: the machine may be busy. Without a deadline it would be minutes.
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(5));
}

TEST(PlanSolver, StopsSoonAfterItIsCancelled) {
  Random random(6);
  const Problem problem = CutProblem(300, 100000, random);
  std::atomic<bool> cancel{false};
  SolveOptions options;
  options.seconds = 3600;
  options.cancel = &cancel;
  Plan plan;
  std::thread solver([&] { plan = SolveLifetimes(problem, options); });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const auto start = Clock::now();
  cancel = true;
  solver.join();
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(2));  // milliseconds, on a quiet machine
  ASSERT_NO_FATAL_FAILURE(ExpectSound(problem, plan));
}

TEST(PlanSolver, CancelledBeforeItBeganGivesASoundPlanAllTheSame) {
  Random random(7);
  const Problem problem = TrainingProblem(20000, random);
  const std::atomic<bool> cancel{true};
  SolveOptions options;
  options.cancel = &cancel;
  const auto start = Clock::now();
  ASSERT_NO_FATAL_FAILURE(ExpectSound(problem, SolveLifetimes(problem, options)));
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(2));
}

TEST(PlanSolver, WithoutSecondsThereIsStillAFirstPass) {
  Random random(8);
  const Problem problem = TrainingProblem(2000, random);
  SolveOptions options;
  options.seconds = 0;
  const Plan plan = SolveLifetimes(problem, options);
  ASSERT_NO_FATAL_FAILURE(ExpectSound(problem, plan));
  EXPECT_LE(plan.height, 2 * plan.lower_bound);
}

TEST(PlanSolver, StopsWhereThePlanIsLowEnough) {
  Random random(9);
  const Problem problem = CutProblem(300, 100000, random);
  SolveOptions options;
  options.seconds = 3600;
  options.target = 3 * MaxLive(problem);
  EXPECT_LE(SolveLifetimes(problem, options).height, options.target);
}

TEST(PlanSolver, OneBufferAndNoBufferAreEasy) {
  EXPECT_EQ(SolveLifetimes({}, SolveOptions{}).height, 0);
  EXPECT_EQ(SolveLifetimes({{{0, 1, 7}}}, SolveOptions{}).height, 7);
}

TEST(PlanSolver, NumbersMayBeAsLargeAsProblemsMayHave) {
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  Random random(10);
  Problem problem;
  for (int i = 0; i < 2000; ++i) {
    problem.buffers.push_back(i % 3 == 0   ? Buffer{kLeast, kMost, kMaxSize}
                              : i % 3 == 1 ? Buffer{kLeast, random.Below(100), kMaxSize - i}
                                           : Buffer{-random.Below(100), kMost, kMaxSize - i});
  }
  ASSERT_TRUE(CheckProblem(problem).ok());
  ASSERT_NO_FATAL_FAILURE(ExpectSound(problem, SolveLifetimes(problem, WithWork(1000000))));
}

TEST(PlanSolver, ProblemsThatAreWrongAreNamed) {
  EXPECT_EQ(CheckProblem({{{0, 1, 1}, {5, 5, 1}}}).message(),
            "buffer 1 lives from 5 until 5: the end is excluded, so it must be larger");
  EXPECT_EQ(CheckProblem({{{0, 1, 0}}}).message(),
            "buffer 0 has size 0: it must be from 1 to 2^46");
  EXPECT_EQ(CheckProblem({{{0, 1, kMaxSize + 1}}}).message(),
            "buffer 0 has size 70368744177665: it must be from 1 to 2^46");
  const Problem large{std::vector<Buffer>(16385, Buffer{0, 1, kMaxSize})};
  EXPECT_EQ(CheckProblem(large).message(),
            "buffer 16384 with size 70368744177664 brings the sum of all sizes over 2^60: use a "
            "larger unit than bytes");
}

}  // namespace
}  // namespace thimble::plan
