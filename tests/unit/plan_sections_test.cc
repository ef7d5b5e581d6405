#include <algorithm>
#include <cstdint>
#include <limits>

#include "allocator/offline/plan/sections.h"
#include "gtest/gtest.h"
#include "tests/plan/problems.h"

namespace thimble::plan {
namespace {

TEST(PlanSections, SpansMeetIfAndOnlyIfLifetimesDo) {
  Random random(1);
  for (int round = 0; round < 300; ++round) {
    const Problem problem = RandomProblem(20, 2 + random.Below(30), 100, random);
    const Sections sections(problem);
    for (std::size_t a = 0; a < problem.buffers.size(); ++a) {
      for (std::size_t b = 0; b < problem.buffers.size(); ++b) {
        const bool meet = problem.buffers[a].lower < problem.buffers[b].upper &&
                          problem.buffers[b].lower < problem.buffers[a].upper;
        ASSERT_EQ(sections.spans()[a].Meets(sections.spans()[b]), meet) << a << " " << b;
      }
    }
  }
}

TEST(PlanSections, LoadsAndPeaksAreThoseOfTheLiveBuffers) {
  Random random(2);
  for (int round = 0; round < 300; ++round) {
    const Problem problem = RandomProblem(15, 2 + random.Below(40), 100, random);
    const Sections sections(problem);
    EXPECT_EQ(sections.max_load(), MaxLive(problem));
    const std::vector<std::int64_t> peaks = sections.PeakLoads();
    for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
      std::int64_t peak = 0;
      for (std::int32_t s = sections.spans()[i].first; s < sections.spans()[i].last; ++s) {
        std::int64_t load = 0;
        for (std::size_t k = 0; k < problem.buffers.size(); ++k) {
          const Span span = sections.spans()[k];
          if (span.first <= s && s < span.last) load += problem.buffers[k].size;
        }
        ASSERT_EQ(sections.loads()[s], load);
        peak = std::max(peak, load);
      }
      ASSERT_EQ(peaks[i], peak);
    }
  }
}

TEST(PlanSections, AreNoMoreThanTheStartsThatFollowAnEnd) {
  // Three starts, two ends, another start: two sets of buffers that are live together.
  const Sections sections({{{0, 10, 1}, {1, 5, 1}, {2, 5, 1}, {7, 9, 1}}});
  EXPECT_EQ(sections.count(), 2);
}

TEST(PlanSections, TimeMayBeAnyNumber) {
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const Sections sections({{{kLeast, kMost, 3}, {kLeast, 0, 4}, {0, kMost, 5}}});
  EXPECT_EQ(sections.count(), 2);
  EXPECT_EQ(sections.max_load(), 8);
}

TEST(PlanSections, ThereAreNoneWithoutBuffers) {
  const Sections sections(Problem{});
  EXPECT_EQ(sections.count(), 0);
  EXPECT_EQ(sections.max_load(), 0);
}

}  // namespace
}  // namespace thimble::plan
