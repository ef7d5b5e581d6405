// Exact search against a search that tries every place.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "allocator/offline/plan/exact_search.h"
#include "allocator/offline/plan/lifetime_solver.h"
#include "allocator/plan/validator.h"
#include "gtest/gtest.h"
#include "tests/plan/problems.h"

namespace thimble::plan {
namespace {

constexpr Ranking kRankings[] = {
    {Trait::kLoad, Trait::kDuration, Trait::kArea},
    {Trait::kSize, Trait::kVolume, Trait::kLength},
    {Trait::kNeighbours, Trait::kArea, Trait::kLoad},
};

std::int64_t Height(const Problem& problem, const std::vector<std::int64_t>& offsets) {
  std::int64_t height = 0;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    height = std::max(height, offsets[i] + problem.buffers[i].size);
  }
  return height;
}

// Tries every offset of every buffer, in the order of their starts.
class EveryPlace {
 public:
  explicit EveryPlace(Problem problem) : buffers_(std::move(problem.buffers)) {
    std::sort(buffers_.begin(), buffers_.end(),
              [](const Buffer& a, const Buffer& b) { return a.lower < b.lower; });
    offsets_.resize(buffers_.size());
  }

  std::int64_t LeastHeight(std::int64_t lower_bound) {
    while (!Fits(0, lower_bound)) ++lower_bound;
    return lower_bound;
  }

 private:
  bool Fits(std::size_t i, std::int64_t capacity) {
    if (i == buffers_.size()) return true;
    for (std::int64_t offset = 0; offset + buffers_[i].size <= capacity; ++offset) {
      bool is_free = true;
      for (std::size_t k = 0; k < i && is_free; ++k) {
        is_free = buffers_[k].upper <= buffers_[i].lower ||
                  offsets_[k] + buffers_[k].size <= offset ||
                  offset + buffers_[i].size <= offsets_[k];
      }
      offsets_[i] = offset;
      if (is_free && Fits(i + 1, capacity)) return true;
    }
    return false;
  }

  std::vector<Buffer> buffers_;
  std::vector<std::int64_t> offsets_;
};

std::int64_t LeastHeight(const Problem& problem) {
  return EveryPlace(problem).LeastHeight(MaxLive(problem));
}

TEST(PlanExact, FindsTheLeastHeightAndProvesIt) {
  Random random(1);
  int harder_than_the_bound = 0;
  for (int round = 0; round < 300; ++round) {
    const Problem problem = round % 3 == 0 ? RandomProblem(8, 3 + random.Below(8), 4, random)
                                           : TightProblem(18, random);
    const Sections sections(problem);
    const std::int64_t least = LeastHeight(problem);
    harder_than_the_bound += least > sections.max_load() ? 1 : 0;
    ExactSearch search(problem, sections);
    for (const Ranking& ranking : kRankings) {
      for (const int noise : {0, 50}) {
        Budget budget{SolveOptions{}};
        ASSERT_EQ(search.Run(least, ranking, 1000000, noise, random, budget), Outcome::kFound);
        const Plan plan{search.offsets(), Height(problem, search.offsets()), 0};
        const absl::Status status = ValidatePlan(problem, plan);
        ASSERT_TRUE(status.ok()) << status;
        ASSERT_EQ(plan.height, least);
        ASSERT_EQ(search.Run(least - 1, ranking, 1000000, noise, random, budget),
                  Outcome::kImpossible);
      }
    }
  }
  EXPECT_GT(harder_than_the_bound, 10) << "the problems are too easy to tell";
}

TEST(PlanExact, SolveFindsTheLeastHeightOfSmallProblems) {
  Random random(2);
  for (int round = 0; round < 200; ++round) {
    const Problem problem = TightProblem(18, random);
    ASSERT_EQ(SolveLifetimes(problem, SolveOptions{}).height, LeastHeight(problem));
  }
}

TEST(PlanExact, GivesUpAfterTheGivenNumberOfNodes) {
  Random random(3);
  const Problem problem = CutProblem(150, 1000, random);
  const Sections sections(problem);
  ExactSearch search(problem, sections);
  Budget budget{SolveOptions{}};
  EXPECT_EQ(search.Run(sections.max_load(), kRankings[1], 20, 0, random, budget), Outcome::kGaveUp);
}

TEST(PlanExact, LifetimesAndSizesMayBeAsLargeAsProblemsMayHave) {
  constexpr std::int64_t kFar = std::int64_t{1} << 62;
  const Problem problem = {{{-kFar, kFar, kMaxSize}, {0, kFar, kMaxSize}, {-kFar, 0, 1}}};
  const Sections sections(problem);
  ExactSearch search(problem, sections);
  Random random(4);
  Budget budget{SolveOptions{}};
  for (const Ranking& ranking : kRankings) {
    EXPECT_EQ(search.Run(2 * kMaxSize, ranking, 1000, 100, random, budget), Outcome::kFound);
    EXPECT_EQ(search.Run(2 * kMaxSize - 1, ranking, 1000, 100, random, budget),
              Outcome::kImpossible);
  }
}

}  // namespace
}  // namespace thimble::plan
