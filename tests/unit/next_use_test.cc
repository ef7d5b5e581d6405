// NextUse: expects in this step what an op's blocks did in the last one.
#include "allocator/swap/next_use.h"

#include "gtest/gtest.h"

namespace thimble {
namespace {

TEST(NextUse, AUseIsKnownByItsOpAndOccurrence) {
  NextUse uses;
  const NextUse::Use first = uses.BeginOp(/*op=*/7, /*step=*/1, /*count=*/2);
  const NextUse::Use second = uses.BeginOp(7, 1, 2);
  EXPECT_NE(first, second) << "the same op again in the same step";
  EXPECT_EQ(uses.BeginOp(7, 2, 2), first);
  EXPECT_EQ(uses.BeginOp(7, 2, 2), second);
  EXPECT_NE(uses.BeginOp(8, 2, 1), first);
}

TEST(NextUse, GapsAreExpectedAgain) {
  NextUse uses;
  const NextUse::Use use = uses.BeginOp(7, 1, 1);
  const OpTime then = uses.now();
  for (std::uint64_t op = 100; op < 110; ++op) uses.BeginOp(op, 1, 1);
  uses.Learn(use, then);
  EXPECT_EQ(uses.BeginOp(7, 2, 1), use);
  EXPECT_EQ(uses.Guess(use, uses.now()), uses.now() + 10);
}

TEST(NextUse, AnUnknownOrWrongGapIsExpectedToTakeAsLongAgain) {
  NextUse uses;
  EXPECT_EQ(uses.BeginOp(/*op=*/0, 1, 1), NextUse::kUnknown);
  const NextUse::Use use = uses.BeginOp(7, 1, 1);
  const OpTime then = uses.now();
  for (int i = 0; i < 5; ++i) uses.BeginOp(0, 0, 0);
  EXPECT_EQ(uses.Guess(NextUse::kUnknown, then), uses.now() + 6);
  EXPECT_EQ(uses.Guess(use, then), uses.now() + 6) << "not used again so far";
}

TEST(NextUse, AnOpWithMoreBlocksThanBeforeIsLearntAnew) {
  NextUse uses;
  const NextUse::Use few = uses.BeginOp(7, 1, 2);
  const NextUse::Use more = uses.BeginOp(7, 2, 3);
  EXPECT_NE(few, more);
  EXPECT_EQ(uses.BeginOp(7, 3, 2), more);
}

}  // namespace
}  // namespace thimble
