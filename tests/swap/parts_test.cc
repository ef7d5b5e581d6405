#include "allocator/offline/schedule/parts.h"

#include "allocator/offline/schedule/swap_summary.h"
#include "gtest/gtest.h"
#include "tests/swap/problems.h"

namespace thimble::schedule {
namespace {

Problem WithBlock(std::int64_t mib) {
  Problem problem = ProblemOf(std::vector<std::int64_t>(5, 1000 * kMiB), 200 * kMs);
  problem.ops[2].live_bytes = 1200 * kMiB;
  Block block;
  block.id = 7;
  block.bytes = mib * kMiB;
  block.touches = {0, 4};
  block.dies = 5;
  problem.blocks = {block};
  return problem;
}

TEST(Parts, SmallBlocksStayWhole) {
  const Problem split = SplitBlocks(WithBlock(256));
  ASSERT_EQ(split.blocks.size(), 1u);
  EXPECT_EQ(split.blocks[0].bytes, 256 * kMiB);
  EXPECT_EQ(split.blocks[0].offset, 0);
}

TEST(Parts, LargeBlocksAreSplitEvenly) {
  Problem problem = WithBlock(900);
  problem.blocks[0].bytes += 3;
  const Problem split = SplitBlocks(problem);
  ASSERT_EQ(split.blocks.size(), 4u);
  std::int64_t end = 0;
  for (const Block& part : split.blocks) {
    EXPECT_EQ(part.offset, end);
    EXPECT_EQ(part.offset % (2 * kMiB), 0);
    EXPECT_LE(part.bytes, kLargestPart);
    EXPECT_EQ(part.id, 7u);
    EXPECT_EQ(part.touches, problem.blocks[0].touches);
    end += part.bytes;
  }
  EXPECT_EQ(end, problem.blocks[0].bytes);
}

// The bus has time for half of the block before the peak and after it.
TEST(Parts, APartIsGoneWhereTheWholeBlockCannotBe) {
  const Problem problem = WithBlock(400);
  Settings settings;
  settings.machine.out_bytes_per_second = settings.machine.in_bytes_per_second = 1100 * kMiB;
  const auto summary = SummarizeSwaps(problem, settings);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->schedule.peak_bytes, 1000 * kMiB);
  EXPECT_EQ(summary->schedule.bytes_out, 200 * kMiB);
  EXPECT_EQ(summary->problem.blocks.size(), 2u);
  for (const Score score : kScores) {
    EXPECT_EQ(AutoSwapPeak(score, problem, summary->machine, 0).value(), 1200 * kMiB);
  }
}

}  // namespace
}  // namespace thimble::schedule
