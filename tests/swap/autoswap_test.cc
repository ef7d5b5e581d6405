// The scores of AutoSwap against cases that were computed by hand.
#include "allocator/offline/schedule/autoswap.h"

#include "allocator/offline/schedule/validator.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/swap/problems.h"

namespace thimble::schedule {
namespace {

using ::testing::ElementsAre;

// A MiB takes a millisecond, and nothing else does.
Machine SlowMachine() {
  Machine machine;
  machine.out_bytes_per_second = machine.in_bytes_per_second = kMiB * 1000;
  machine.out_latency_ns = machine.in_latency_ns = 0;
  return machine;
}

// Ten ops of 10 ms; op 5 has the peak. Gone for, with nothing else on the bus:
//   0: 1 MiB, idle from 10 to 90 ms   11 to 89 ms, 78 ms
//   1: 4 MiB, idle from 20 to 80 ms   24 to 76 ms, 52 ms
//   2: 6 MiB, idle from 40 to 90 ms   46 to 84 ms, 38 ms
// The loads are high from op 4 on, so that what is gone late weighs more.
Problem ThreeBlocks() {
  Problem problem = ProblemOf({20 * kMiB, 20 * kMiB, 20 * kMiB, 20 * kMiB, 40 * kMiB, 50 * kMiB,
                               40 * kMiB, 40 * kMiB, 40 * kMiB, 20 * kMiB},
                              10 * kMs);
  const auto block = [&](std::int64_t mib, std::vector<std::int32_t> touches) {
    Block result;
    result.bytes = mib * kMiB;
    result.touches = std::move(touches);
    result.dies = 10;
    problem.blocks.push_back(result);
  };
  block(1, {0, 9});
  block(4, {1, 8});
  block(6, {3, 9});
  return problem;
}

std::vector<std::int32_t> BlocksByRank(Score score, const Problem& problem) {
  const std::vector<Window> windows = FindWindows(problem);
  std::vector<std::int32_t> blocks;
  for (const std::size_t i :
       RankWindows(score, problem, SlowMachine(), Timeline(problem), windows)) {
    blocks.push_back(windows[i].block);
  }
  return blocks;
}

TEST(AutoSwap, DoaRanksByHowLongABlockIsGone) {
  EXPECT_THAT(BlocksByRank(Score::kDoa, ThreeBlocks()), ElementsAre(0, 1, 2));  // 78, 52, 38 ms
}

TEST(AutoSwap, AoaRanksByThatTimesBytes) {
  EXPECT_THAT(BlocksByRank(Score::kAoa, ThreeBlocks()), ElementsAre(2, 1, 0));  // 228, 208, 78
}

// In MiB x ms, the load while it is gone:
//   0: 20 x 29 (11 to 40) + 40 x 10 + 50 x 10 + 40 x 29 (60 to 89) = 2640
//   1: 20 x 16 (24 to 40) + 40 x 10 + 50 x 10 + 40 x 16 (60 to 76) = 1860
//   2: 40 x 4 (46 to 50) + 50 x 10 + 40 x 24 (60 to 84) = 1620
TEST(AutoSwap, WdoaRanksByTheLoadMeanwhile) {
  EXPECT_THAT(BlocksByRank(Score::kWdoa, ThreeBlocks()), ElementsAre(0, 1, 2));
}

// Two that are gone in the same calm time, and one in a short and crowded one. WDOA has both calm
// ones first. Once the first of them has left, the load of the second is lower than that of the
// third.
TEST(AutoSwap, SwdoaLooksAgainAtWhatIsLeft) {
  Problem problem = ProblemOf(std::vector<std::int64_t>(10, 20 * kMiB), 10 * kMs);
  problem.ops[5].live_bytes = 21 * kMiB;
  Block calm;
  calm.bytes = 10 * kMiB;
  calm.touches = {0, 9};
  calm.dies = 10;
  problem.blocks = {calm, calm, calm};
  problem.blocks[1].touches = {1, 9};
  problem.blocks[2].touches = {0, 8};
  problem.blocks[2].bytes = 2 * kMiB;
  // Gone for: 0: 20 to 80, 1: 30 to 80, 2: 12 to 78 ms. WDOA: 1210, 1010, 1330 MiB x ms.
  EXPECT_THAT(BlocksByRank(Score::kWdoa, problem), ElementsAre(2, 0, 1));
  problem.blocks[2].touches = {2, 8};
  // Now 2 is gone from 32 to 78 ms: 930. Block 0 leaves for ops 2 to 7: there is 10 MiB less. Left
  // for 1: 30 to 80 ms, 510; for 2: 32 to 78 ms, 470. With 8 MiB in 2, from 38 to 72 ms, WDOA is
  // 690, and after block 0 has left 350.
  EXPECT_THAT(BlocksByRank(Score::kSwdoa, problem), ElementsAre(0, 1, 2));
  problem.blocks[1].touches = {1, 7};
  // 1 is gone from 30 to 60 ms: WDOA 610, below the 930 of 2; both halve.
  EXPECT_THAT(BlocksByRank(Score::kSwdoa, problem), ElementsAre(0, 2, 1));
}

TEST(AutoSwap, ACandidateSpansThePeakAndReturns) {
  Problem problem = ThreeBlocks();
  problem.blocks[0].touches = {0, 5, 9};  // touched at the peak
  problem.blocks[1].touches = {1};        // never again
  EXPECT_THAT(BlocksByRank(Score::kDoa, problem), ElementsAre(2));
}

// The bus is free for 0 from 10 to 11 ms and for 1 from 20 to 24. Block 2 could leave from 40
// to 46.
TEST(AutoSwap, SchedulesAreThoseOfTheRanking) {
  const Problem problem = ThreeBlocks();
  const Schedule all = PlanAutoSwap(Score::kDoa, problem, SlowMachine(), 0);
  EXPECT_EQ(all.peak_bytes, 40 * kMiB);  // at op 8, for which all are back; op 5 has 50 - 11
  EXPECT_EQ(all.bytes_out, 11 * kMiB);
  EXPECT_EQ(all.bytes_in, 11 * kMiB);
  EXPECT_EQ(all.policy, "DOA");
  EXPECT_TRUE(ValidateSchedule(problem, SlowMachine(), all).ok());
  const Schedule one = PlanAutoSwap(Score::kAoa, problem, SlowMachine(), 44 * kMiB);
  EXPECT_EQ(one.peak_bytes, 44 * kMiB);
  ASSERT_EQ(one.swaps.size(), 1u);
  EXPECT_EQ(one.swaps[0].block, 2);
  EXPECT_EQ(one.swaps[0].out_ns, 40 * kMs);
  EXPECT_EQ(one.swaps[0].in_ns, 84 * kMs);
  EXPECT_EQ(one.swaps[0].gone_from, 5);
  EXPECT_EQ(one.swaps[0].gone_until, 8);
}

TEST(AutoSwap, NamesAreThoseOfThePaper) {
  std::vector<std::string> names;
  for (const Score score : kScores) names.emplace_back(NameOf(score));
  EXPECT_THAT(names, ElementsAre("DOA", "AOA", "WDOA", "SWDOA"));
}

}  // namespace
}  // namespace thimble::schedule
