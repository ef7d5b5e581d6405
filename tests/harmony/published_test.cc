// The published system: its published figures come out.
#include <vector>

#include "allocator/offline/harmony/lru.h"
#include "allocator/offline/harmony/packers.h"
#include "allocator/offline/harmony/published_search.h"
#include "allocator/offline/harmony/published_timing.h"
#include "allocator/offline/harmony/validator.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/harmony/models.h"

namespace thimble::harmony {
namespace {

using ::testing::ElementsAre;

class Published : public testing::Test {
 protected:
  Schedule Best(Mode mode, bool prefetch, const PackerList& packers) const {
    const std::vector<Schedule> found =
        SearchPublished(costs_, server_, 32, {mode, prefetch, packers});
    EXPECT_EQ(found.size(), 1u);
    EXPECT_TRUE(ValidateSchedule(costs_, server_, found[0]).ok());
    return found[0];
  }

  const Profile profile_ = Bert96();
  const Costs costs_{profile_, 32};
  const Server server_ = PublishedServer(2, 10 * kGiBBytes);
};

TEST_F(Published, Bert96TakesAsLongAsPublished) {
  const Schedule dp = Best(Mode::kDataParallel, false, PackersOfTheRuns());
  EXPECT_NEAR(dp.seconds, 19.421, 0.001);
  EXPECT_NEAR(dp.in_bytes / kGiBBytes, 18.88, 0.01);
  EXPECT_NEAR(dp.out_bytes / kGiBBytes, 10.57, 0.01);
  const Schedule pp = Best(Mode::kPipeline, false, PackersOfTheRuns());
  EXPECT_NEAR(pp.seconds, 17.874, 0.001);
  EXPECT_NEAR(pp.in_bytes / kGiBBytes, 9.28, 0.01);
  EXPECT_NEAR(pp.out_bytes / kGiBBytes, 5.13, 0.01);
  EXPECT_NEAR(pp.compute_fraction, 0.86, 0.01);
}

TEST_F(Published, PrefetchAndAllPackersHelp) {
  EXPECT_NEAR(Best(Mode::kPipeline, true, DefaultPackers()).seconds, 17.051, 0.001);
  EXPECT_NEAR(Best(Mode::kDataParallel, true, DefaultPackers()).seconds, 18.238, 0.001);
}

// The published scheduler's own figures for this model: batch 36, three GPUs, 1e9 bytes.
TEST(PublishedSearch, EveryPackerIsExact) {
  const Profile profile = UnevenLayers();
  const Costs costs(profile, 36);
  struct Expected {
    PackerList packers;
    double dp, dp_prefetch, pp, pp_prefetch;
  };
  const Expected kExpected[] = {
      {{Packer::kGreedy}, 8.087712, 5.500000, 7.560119, 6.228580},
      {{Packer::kGreedyAddx}, 7.981092, 5.803751, 8.496862, 7.261503},
      {{Packer::kGreedyReverse}, 7.505915, 5.528580, 7.221586, 6.198680},
      {{Packer::kGreedyReverseAddx}, 7.545915, 5.941863, 7.804668, 7.137218},
      {{Packer::kBalanced}, 8.570535, 5.779033, 8.083132, 6.342122},
      {{Packer::kBalancedAddx}, 9.543477, 6.185931, 9.001498, 7.290521},
      {{Packer::kBalancedTime}, 9.211917, 6.167401, 8.271690, 6.235414},
      {PackersOfTheRuns(), 9.211917, 6.167401, 8.271690, 6.235414},
      {DefaultPackers(), 7.452621, 5.941863, 7.642047, 6.235414},
  };
  const Server server = PublishedServer(3, 1e9);
  for (const Expected& expected : kExpected) {
    SCOPED_TRACE(NameOf(expected.packers[0]));
    const auto seconds = [&](Mode mode, bool prefetch) {
      const Schedule best =
          SearchPublished(costs, server, 36, {mode, prefetch, expected.packers})[0];
      EXPECT_TRUE(ValidateSchedule(costs, server, best).ok());
      return best.seconds;
    };
    EXPECT_NEAR(seconds(Mode::kDataParallel, false), expected.dp, 1e-6);
    EXPECT_NEAR(seconds(Mode::kDataParallel, true), expected.dp_prefetch, 1e-6);
    EXPECT_NEAR(seconds(Mode::kPipeline, false), expected.pp, 1e-6);
    EXPECT_NEAR(seconds(Mode::kPipeline, true), expected.pp_prefetch, 1e-6);
  }
}

// With more memory the published system can be slower: its packers leave one cut for each size.
TEST(PublishedSearch, IsNotMonotoneAsThePublishedOne) {
  const Profile profile = UnevenLayers();
  const Costs costs(profile, 36);
  const auto seconds = [&](double bytes) {
    return SearchPublished(costs, PublishedServer(3, bytes), 36,
                           {Mode::kDataParallel, false, DefaultPackers()})[0]
        .seconds;
  };
  EXPECT_NEAR(seconds(1.0e9), 7.452621, 1e-6);
  EXPECT_NEAR(seconds(1.1e9), 7.527343, 1e-6);
}

TEST_F(Published, VirtualMemoryWithoutAPlanSwapsFarMore) {
  const auto seconds = [&](Mode mode, bool recompute) {
    return LruBaseline(costs_, server_, 32, mode, recompute)->seconds;
  };
  EXPECT_NEAR(seconds(Mode::kDataParallel, false), 45.0, 0.1);
  EXPECT_NEAR(seconds(Mode::kDataParallel, true), 18.7, 0.1);
  EXPECT_NEAR(seconds(Mode::kPipeline, false), 44.4, 0.1);
  EXPECT_NEAR(seconds(Mode::kPipeline, true), 20.3, 0.1);
  EXPECT_NEAR(LruBaseline(costs_, server_, 32, Mode::kDataParallel, false)->swap_bytes / kGiBBytes,
              744, 1);
}

TEST_F(Published, NoPackFitsInTooLittle) {
  EXPECT_TRUE(SearchPublished(costs_, PublishedServer(2, 1e8), 32, {}).empty());
  EXPECT_FALSE(LruBaseline(costs_, PublishedServer(2, 1e8), 32, Mode::kPipeline, true).has_value());
}

TEST(Packers, CutByTimeByMemoryAndGreedily) {
  const Profile profile = EqualLayers(8, 1, 10, 1, 9);  // 10 + size * 10 bytes forward
  const Costs costs(profile, 4);
  const auto cut = [&](Packer packer, double bytes) {
    std::vector<int> firsts;
    for (const Pack& pack : CutIntoPacks(costs, packer, Pass::kForward, 1, 8, bytes)) {
      firsts.push_back(pack.first);
    }
    return firsts;
  };
  EXPECT_THAT(cut(Packer::kBalancedTime, 97), ElementsAre(0, 3));  // split before the border
  EXPECT_THAT(cut(Packer::kBalancedTime, 200), ElementsAre(0));
  EXPECT_THAT(cut(Packer::kGreedyReverseAddx, 61), ElementsAre(0, 2, 5));
  EXPECT_THAT(cut(Packer::kBalancedAddx, 19), ElementsAre());
}

TEST(Timing, OneGpuWithoutPrefetchIsASum) {
  // One fused pack: weights in, data in, recompute, backward, gradient out, deletion.
  const Profile profile = EqualLayers(2, 1, 11.5 * kGiBBytes, 0, 0);
  const Costs costs(profile, 1);
  Plan plan;
  plan.rules = Rules::kHarmony;
  plan.prefetch = false;
  plan.tasks.push_back({{0, 1}, Pass::kBackward, 0, {1}, {}, {}});
  const Schedule schedule = TimePublished(costs, PublishedServer(1, 1e12), plan);
  EXPECT_NEAR(schedule.seconds, 2 + 6 + 2 + 0.040, 1e-9);
  EXPECT_NEAR(schedule.in_bytes, 23 * kGiBBytes, 1);
}

TEST(Timing, BuffersTravelWithTheWeights) {
  Profile profile = EqualLayers(2, 1, 11.5 * kGiBBytes, 0, 0);
  for (Layer& layer : profile.layers) layer.buffer_bytes = 1.15 * kGiBBytes;
  const Costs costs(profile, 1);
  Plan plan;
  plan.rules = Rules::kHarmony;
  plan.prefetch = false;
  plan.tasks.push_back({{0, 1}, Pass::kBackward, 0, {1}, {}, {}});
  const Schedule schedule = TimePublished(costs, PublishedServer(1, 1e12), plan);
  EXPECT_NEAR(schedule.seconds, 2.2 + 6 + 2.2 + 0.040, 1e-9);
}

}  // namespace
}  // namespace thimble::harmony
