#include <algorithm>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "allocator/plan/clique_bound.h"
#include "allocator/plan/conflict_packer.h"
#include "allocator/plan/solver.h"
#include "allocator/plan/validator.h"
#include "gtest/gtest.h"
#include "tests/plan/problems.h"

namespace thimble::plan {
namespace {

// All in conflict with all.
ConflictProblem Clique(std::vector<std::int64_t> sizes, std::vector<std::int64_t> fixed) {
  ConflictProblem problem;
  const std::int32_t count = static_cast<std::int32_t>(sizes.size());
  problem.conflicts = Conflicts(count);
  for (std::int32_t i = 0; i < count; ++i) {
    for (std::int32_t j = 0; j < i; ++j) problem.conflicts.Add(i, j);
  }
  problem.sizes = std::move(sizes);
  problem.fixed = std::move(fixed);
  problem.fixed.resize(problem.sizes.size(), kNotFixed);
  problem.alignment = 1;
  return problem;
}

// The lowest packing there is: sorted by its offsets, first fit finds it or one as low.
std::int64_t LowestOfAllOrders(const ConflictProblem& problem) {
  ConflictPacker packer(problem);
  std::vector<std::int32_t> order;
  for (std::int32_t i = 0; i < packer.count(); ++i) {
    if (problem.fixed[i] == kNotFixed) order.push_back(i);
  }
  SolveOptions options;
  options.seconds = 3600;
  Budget budget(options);
  Packing packing;
  std::int64_t lowest = kNoHeight;
  do {
    if (packer.Pack(order, Fit::kFirst, lowest, budget, packing)) lowest = packing.height;
  } while (std::next_permutation(order.begin(), order.end()));
  return lowest;
}

TEST(PlanCliqueBound, IsTheHeaviestCliqueWhereNothingIsFixed) {
  ConflictProblem ring;
  ring.sizes = {3, 5, 4, 2, 1};
  ring.conflicts = Conflicts(5);
  for (std::int32_t i = 0; i < 5; ++i) ring.conflicts.Add(i, (i + 1) % 5);
  EXPECT_EQ(CliqueBound(ring), 9);  // 5 and 4
  EXPECT_EQ(CliqueBound(Clique({3, 5, 4}, {})), 12);
}

// Gaps of 8 and 4 bytes, and 12 bytes to place: enough bytes, but the sizes do not fit.
TEST(PlanCliqueBound, GapsThatSizesDoNotAddUpToStayUnfilled) {
  const ConflictProblem problem = Clique({4, 3, 5, 5, 5, 2}, {0, 12, 19});
  EXPECT_EQ(CliqueBound(problem), 24 + 5);
  EXPECT_EQ(LowestOfAllOrders(problem), 24 + 5);
}

// One buffer of two fits the only large gap. Small ones hide that: they could fill it too.
TEST(PlanCliqueBound, LargeBuffersThatFitNoGapGoOnTop) {
  const ConflictProblem problem = Clique({10, 10, 100, 100, 1, 1, 1, 1}, {120, 200});
  EXPECT_EQ(CliqueBound(problem), 210 + 100);
}

// Only buffers that conflict with the whole clique are in its way.
TEST(PlanCliqueBound, FixedBuffersWithoutConflictLeaveNoGaps) {
  ConflictProblem problem = Clique({10, 40, 40}, {30});
  EXPECT_EQ(CliqueBound(problem), 40 + 80);
  problem.conflicts = Conflicts(3);
  problem.conflicts.Add(1, 2);
  EXPECT_EQ(CliqueBound(problem), 80);
}

TEST(PlanCliqueBound, IsNeverAboveTheLowestPacking) {
  Random random(1);
  int tight = 0;
  for (int round = 0; round < 2000; ++round) {
    const std::int32_t count = 2 + static_cast<std::int32_t>(random.Below(5));
    const std::int32_t obstacles = static_cast<std::int32_t>(random.Below(4));
    ConflictProblem problem;
    problem.alignment = 1;
    problem.conflicts = Conflicts(count + obstacles);
    std::int64_t free_from = 0;
    for (std::int32_t i = 0; i < count + obstacles; ++i) {
      problem.sizes.push_back(1 + random.Below(12));
      problem.fixed.push_back(i < count ? kNotFixed : free_from + random.Below(20));
      if (i >= count) free_from = problem.fixed[i] + problem.sizes[i];
      for (std::int32_t j = 0; j < i; ++j) {
        if (!random.OneIn(4)) problem.conflicts.Add(i, j);
      }
    }
    ASSERT_TRUE(CheckConflictProblem(problem).ok());
    const std::int64_t lowest = LowestOfAllOrders(problem);
    ASSERT_LE(CliqueBound(problem), lowest) << "round " << round;
    if (CliqueBound(problem) == lowest) ++tight;
  }
  EXPECT_GE(tight, 1000);  // a bound of zero would be useless
}

// More sums than are kept: larger gaps count as full.
TEST(PlanCliqueBound, ManyDifferentSizesDoNotBreakIt) {
  Random random(2);
  std::vector<std::int64_t> sizes = {100};
  for (int k = 0; k < 60; ++k) sizes.push_back(1000 + random.Below(1000));
  const std::int64_t rest = std::accumulate(sizes.begin() + 1, sizes.end(), std::int64_t{0});
  EXPECT_EQ(CliqueBound(Clique(sizes, {20000})), 100 + rest);
  EXPECT_EQ(CliqueBound(Clique(sizes, {999})), 1099 + rest);
}

// Live bytes say 900, and no packing is lower than 1000: the search must not look for one until
// its time is over.
TEST(PlanCliqueBound, EndsTheSearch) {
  ConflictProblem problem = Clique({100, 400, 300, 100}, {600});
  problem.lower_bound = 900;
  SolveOptions options;
  options.seconds = 20;
  const auto start = std::chrono::steady_clock::now();
  const Plan plan = SolveConflicts(problem, options);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  EXPECT_TRUE(ValidatePlan(problem, plan).ok());
  EXPECT_EQ(plan.height, 1000);
  EXPECT_EQ(plan.lower_bound, 1000);
}

}  // namespace
}  // namespace thimble::plan
