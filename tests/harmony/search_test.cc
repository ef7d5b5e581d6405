// The search: better than the published one, within memory, and deterministic.
#include "allocator/offline/harmony/search.h"

#include <algorithm>
#include <limits>
#include <random>

#include "allocator/offline/harmony/json.h"
#include "allocator/offline/harmony/published_search.h"
#include "allocator/offline/harmony/report.h"
#include "allocator/offline/harmony/shape.h"
#include "allocator/offline/harmony/simulator.h"
#include "allocator/offline/harmony/validator.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/harmony/models.h"

namespace thimble::harmony {
namespace {

using ::testing::ElementsAre;

TEST(Search, Bert96IsFasterThanPublishedWithAFortiethOfLrusTraffic) {
  const Profile profile = Bert96();
  Settings settings;
  settings.batch = 32;
  settings.seconds = 1;
  const Server server = PublishedServer(2, 10 * kGiBBytes);
  const Baselines baselines = MakeBaselines(profile, server, settings.batch);
  for (const Mode mode : {Mode::kDataParallel, Mode::kPipeline}) {
    settings.mode = mode;
    settings.swap_limit = baselines[kLruDp]->swap_bytes / 42;
    const auto report = MakeReport(profile, server, settings);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->schedule.plan.mode, mode);
    EXPECT_LT(report->schedule.seconds, 0.95 * baselines[kHarmonyPpPrefetch]->seconds);
    EXPECT_LT(report->schedule.seconds, 0.9 * baselines[kHarmonyPp]->seconds);
    EXPECT_LT(report->schedule.swap_bytes() * 40, baselines[kLruDp]->swap_bytes);
  }
}

TEST(Search, TheSameInputGivesTheSamePlan) {
  const Profile profile = Bert96();
  const Costs costs(profile, 32);
  const Server server = PublishedServer(2, 10 * kGiBBytes);
  SearchOptions options;
  options.seconds = 0.1;
  const auto first = SearchPlans(costs, server, 32, options);
  const auto second = SearchPlans(costs, server, 32, options);
  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_EQ(PlanJson(first->schedule), PlanJson(second->schedule));
}

TEST(Search, KeepsActivationsWhereTheBusHasTimeForThem) {
  const Profile profile = Bert96();
  Settings settings;
  settings.batch = 32;
  settings.mode = Mode::kDataParallel;
  settings.seconds = 1;
  settings.swap_limit = 0;
  const Server server = PublishedServer(2, 10 * kGiBBytes);
  const auto kept = MakeReport(profile, server, settings);
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_LT(kept->schedule.seconds, kept->compute_bound);
  settings.keep = false;
  const auto again = MakeReport(profile, server, settings);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_GT(again->schedule.seconds, again->compute_bound);
  EXPECT_EQ(again->schedule.plan.tasks.back().keep.size(), 0);
}

TEST(Search, PacksStayWhereTheBusIsSlow) {
  const Profile profile = Bert96();
  Settings settings;
  settings.batch = 2;
  settings.mode = Mode::kDataParallel;
  settings.seconds = 0.5;
  Server server = PublishedServer(2, 10 * kGiBBytes);
  server.switches[0].uplink_bytes_per_second = 3 * kGiBBytes;
  const auto resident = MakeReport(profile, server, settings);
  settings.resident = false;
  const auto without = MakeReport(profile, server, settings);
  ASSERT_TRUE(resident.ok() && without.ok());
  EXPECT_LT(resident->schedule.seconds, 0.8 * without->schedule.seconds);
  for (const Task& task : without->schedule.plan.tasks) EXPECT_FALSE(task.is_resident);
}

TEST(Search, AModelThatFitsIsAsFastAsOnePack) {
  const Profile profile = EqualLayers(10, 0.01, 1e6, 1e4, 1e6);
  Settings settings;
  settings.batch = 4;
  settings.seconds = 0.2;
  const auto report = MakeReport(profile, PublishedServer(1, 8e9), settings);
  ASSERT_TRUE(report.ok()) << report.status();
  Shape one;
  one.fused_count = 4;
  one.resident_first = 0;
  const Server server = PublishedServer(1, 8e9);
  const Costs costs(profile, 4);
  const auto schedule = Simulator(costs, server).Run(PlanOf(costs, server, one, 4));
  ASSERT_TRUE(schedule.has_value());
  EXPECT_LE(report->schedule.seconds, schedule->seconds);
  EXPECT_NEAR(report->compute_bound, 10 * 0.03 * 4, 1e-9);
}

TEST(Search, EndsWhereNothingCanBeChanged) {
  const Profile profile = EqualLayers(1, 0.01, 1e6, 1e4, 1e6);
  Settings settings;
  settings.batch = 1;
  settings.seconds = 0.1;
  const auto report = MakeReport(profile, PublishedServer(1, 8e9), settings);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->schedule.plan.tasks.size(), 1);
}

TEST(Search, FindsAPlanInTheLeastMemory) {
  const Profile profile = EqualLayers(12, 0.01, 1e8, 1e6, 1e8);
  Settings settings;
  settings.batch = 8;
  settings.seconds = 0.3;
  // Twice the weights of a layer, its work, its input and gradients both ways: 3.03e8.
  const auto report = MakeReport(profile, PublishedServer(2, 3.1e8), settings);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_LE(report->schedule.peak_bytes[0], 3.1e8);
}

TEST(Search, IsNeverSlowerThanThePublishedOne) {
  int compared = 0;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const Profile profile = RandomProfile(random);
    const int batch = 1 + static_cast<int>(random() % 24);
    const Server drawn = RandomServer(random, profile, batch);
    const Server server = PublishedServer(drawn.gpu_count(), drawn.memory_bytes);
    const Costs costs(profile, batch);
    double published = std::numeric_limits<double>::infinity();
    for (const Mode mode : {Mode::kDataParallel, Mode::kPipeline}) {
      if (mode == Mode::kDataParallel && batch % server.gpu_count() != 0) continue;
      for (const Schedule& schedule :
           SearchPublished(costs, server, batch, {mode, true, DefaultPackers()}, 1)) {
        published = std::min(published, schedule.seconds);
      }
    }
    SearchOptions options;
    options.seconds = 0.05;
    const auto schedule = SearchPlans(costs, server, batch, options);
    ASSERT_TRUE(schedule.has_value());
    EXPECT_LE(schedule->schedule.seconds, published);
    ++compared;
  }
  EXPECT_EQ(compared, 20);
}

TEST(Shapes, CountsAreTheLeastForEachLargestMicrobatch) {
  EXPECT_THAT(Counts(8, 8), ElementsAre(1, 2, 3, 4, 8));
  EXPECT_THAT(Counts(8, 3), ElementsAre(3, 4, 8));
  EXPECT_THAT(EvenSplit(8, 3), ElementsAre(3, 3, 2));
}

TEST(Shapes, APlanAndItsShapeAreTheSame) {
  const Profile profile = EqualLayers(12, 0.01, 1e6, 1e4, 1e6);
  const Costs costs(profile, 8);
  Shape shape;
  shape.forward = {0, 3, 7};
  shape.backward = {0, 5};
  shape.fused_first = 9;
  shape.forward_count = 2;
  shape.backward_count = 3;
  shape.fused_count = 4;
  const Plan plan = PlanOf(costs, PublishedServer(2, 1e12), shape, 8);
  const Shape again = ShapeOf(plan);
  EXPECT_EQ(again.forward, shape.forward);
  EXPECT_EQ(again.backward, shape.backward);
  EXPECT_EQ(again.fused_first, 9);
  EXPECT_THAT(plan.tasks[4].microbatches, ElementsAre(3, 3, 2));
  EXPECT_EQ(again.fused_count, 4);
}

TEST(Json, APlanNamesItsPacks) {
  const Profile profile = EqualLayers(4, 1, 1e6, 1e6, 1e6);
  const Costs costs(profile, 4);
  Shape shape;
  shape.mode = Mode::kPipeline;
  shape.forward = {0};
  shape.backward = {0};
  shape.fused_first = 2;
  shape.forward_count = 2;
  Schedule schedule;
  schedule.plan = PlanOf(costs, PublishedServer(2, 1e12), shape, 4);
  schedule.peak_bytes = {1, 2};
  schedule.plan.tasks[2].segments = {0, 1};
  schedule.plan.tasks[2].keep = {Keep::kOnHost, Keep::kOnGpu};
  const std::string text = PlanJson(schedule);
  EXPECT_THAT(text, testing::HasSubstr(
                        R"({"first":0,"last":1,"gpu":0,"microbatches":[2,2],"segments":[0]})"));
  EXPECT_THAT(text, testing::HasSubstr(R"("keep":[1],"swap":[0])"));
}

}  // namespace
}  // namespace thimble::harmony
