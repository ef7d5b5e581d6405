#include <algorithm>
#include <cmath>
#include <numeric>

#include "allocator/offline/plan/section_packer.h"
#include "allocator/plan/orders.h"
#include "allocator/plan/validator.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/plan/problems.h"

namespace thimble::plan {
namespace {

using ::testing::ElementsAre;

Traits TraitsOf(const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& lengths) {
  Traits traits;
  for (const std::int64_t size : sizes) traits.size.push_back(Log2(size));
  for (const std::int64_t length : lengths) traits.length.push_back(Log2(length));
  traits.load.assign(sizes.size(), 0);
  return traits;
}

std::vector<std::int32_t> All(std::size_t count) {
  std::vector<std::int32_t> all(count);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

TEST(PlanOrders, Log2IsRightToTwoUnits) {
  Random random(1);
  for (int k = 0; k < 100000; ++k) {
    const std::uint64_t x = (random.Bits() >> random.Below(63)) | 1;
    const double exact = std::log2(static_cast<double>(x)) * 65536;
    ASSERT_LE(static_cast<double>(Log2(x)), exact + 0.01) << x;
    ASSERT_GE(static_cast<double>(Log2(x)), exact - 2) << x;
  }
  EXPECT_EQ(Log2(1), 0);
  EXPECT_EQ(Log2(std::uint64_t{1} << 63), 63 << 16);
}

TEST(PlanOrders, WeightsMakeSizeAreaAndLifetimeOrders) {
  const Traits traits = TraitsOf({8, 4, 64, 2}, {1, 16, 1, 4});
  Random random(1);
  const auto order = [&](Rule rule) { return MakeOrder(All(4), traits, rule, random); };
  EXPECT_THAT(order({1, 0, 0, 0, 0, Fit::kFirst}), ElementsAre(2, 0, 1, 3));
  EXPECT_THAT(order({0, 1, 0, 0, 0, Fit::kFirst}), ElementsAre(1, 3, 0, 2));
  // Areas 8, 64, 64, 8: equal ones keep their order.
  EXPECT_THAT(order({1, 1, 0, 0, 0, Fit::kFirst}), ElementsAre(1, 2, 0, 3));
  // Within a factor of four of the longest first, then by size.
  EXPECT_THAT(order({1, 0, 0, 8, 0, Fit::kFirst}), ElementsAre(1, 3, 2, 0));
}

TEST(PlanOrders, ThePortfolioBeginsWithSizeAloneAndIsTheSameForEverySeed) {
  const Rule& first = Portfolio().front();
  EXPECT_GT(first.size, 0);
  EXPECT_EQ(first.length + first.load + first.long_first, 0);
  EXPECT_EQ(first.fit, Fit::kFirst);
  for (const Rule& rule : Portfolio()) EXPECT_EQ(rule.noise, 0);
}

TEST(PlanOrders, OnlyMovableBuffersAreInTheOrder) {
  Random random(1);
  const Traits traits = TraitsOf({8, 4, 64}, {1, 1, 1});
  EXPECT_THAT(MakeOrder({0, 1}, traits, {1, 0, 0, 0, 0, Fit::kFirst}, random), ElementsAre(0, 1));
}

TEST(PlanOrders, EveryRuleGivesEveryBufferAPlace) {
  Random random(3);
  const Problem problem = TrainingProblem(500, random);
  const Sections sections(problem);
  SectionPacker packer(problem, sections);
  std::vector<Rule> rules = Portfolio();
  for (int k = 0; k < 50; ++k) rules.push_back(AnyRule(random));
  for (int k = 0; k < 50; ++k) rules.push_back(NearbyRule(rules[random.Below(30)], random));
  Budget budget{SolveOptions{}};
  for (const Rule& rule : rules) {
    const std::vector<std::int32_t> order =
        MakeOrder(All(problem.buffers.size()), packer.traits(), rule, random);
    std::vector<std::int32_t> sorted = order;
    std::sort(sorted.begin(), sorted.end());
    ASSERT_EQ(sorted, All(problem.buffers.size()));
    Packing packing;
    ASSERT_TRUE(packer.Pack(order, rule.fit, kNoHeight, budget, packing));
    const absl::Status status =
        ValidatePlan(problem, {packing.offsets, packing.height, sections.max_load()});
    ASSERT_TRUE(status.ok()) << status;
  }
}

}  // namespace
}  // namespace thimble::plan
