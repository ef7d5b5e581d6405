// Random models on random servers: every schedule of every kind passes the validator.
#include <algorithm>
#include <random>

#include "allocator/offline/harmony/published_search.h"
#include "allocator/offline/harmony/search.h"
#include "allocator/offline/harmony/shape.h"
#include "allocator/offline/harmony/simulator.h"
#include "allocator/offline/harmony/validator.h"
#include "gtest/gtest.h"
#include "tests/effort.h"
#include "tests/harmony/models.h"

namespace thimble::harmony {
namespace {

TEST(Property, SchedulesOfSearchesAreValid) {
  int plans = 0;
  for (unsigned seed = 1; seed <= Effort(24); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const Profile profile = RandomProfile(random);
    const int batch = 1 + static_cast<int>(random() % 24);
    const Server server = RandomServer(random, profile, batch);
    const Costs costs(profile, batch);
    for (const Mode mode : {Mode::kDataParallel, Mode::kPipeline}) {
      if (mode == Mode::kDataParallel && batch % server.gpu_count() != 0) continue;
      for (const bool prefetch : {false, true}) {
        for (const Schedule& schedule :
             SearchPublished(costs, server, batch, {mode, prefetch, DefaultPackers()}, 3)) {
          const absl::Status status = ValidateSchedule(costs, server, schedule);
          EXPECT_TRUE(status.ok()) << status;
        }
      }
      SearchOptions options;
      options.may_pipeline = mode == Mode::kPipeline;
      options.may_split_data = !options.may_pipeline;
      options.seconds = 0.005;
      const auto found = SearchPlans(costs, server, batch, options);
      if (!found.has_value()) continue;
      const absl::Status status = ValidateSchedule(costs, server, found->schedule);
      EXPECT_TRUE(status.ok()) << status;
      ++plans;
    }
  }
  EXPECT_GT(plans, static_cast<int>(Effort(24)));
}

// Layers without weights or input: their copies take no time and no memory.
TEST(Property, SchedulesWithEmptyCopiesAreValid) {
  std::mt19937 random(9);
  const Profile profile = RandomProfile(random);
  ASSERT_EQ(profile.layer_count(), 23);
  Server server = PublishedServer(4, 0);
  const Costs costs(profile, 8);
  Shape shape;
  shape.fused_first = 22;
  for (int layer = 0; layer < 22; ++layer) shape.forward.push_back(layer);
  shape.backward = shape.forward;
  shape.forward_count = shape.backward_count = shape.fused_count = 8;
  int empty = 0;
  for (const double memory : {9.3e8, 1.2e9, 2e9}) {
    for (const bool on_host : {false, true}) {
      server.memory_bytes = memory;
      shape.boundaries_on_host = on_host;
      const auto schedule = Simulator(costs, server).Run(PlanOf(costs, server, shape, 8));
      ASSERT_TRUE(schedule.has_value());
      const absl::Status status = ValidateSchedule(costs, server, *schedule);
      EXPECT_TRUE(status.ok()) << status;
      for (const Action& action : schedule->actions) empty += action.begin == action.end ? 1 : 0;
    }
  }
  EXPECT_GT(empty, 0);
}

// Shapes that the search would never try.
TEST(Property, RandomPlansHaveValidSchedulesOrNone) {
  int valid = 0;
  for (unsigned seed = 1; seed <= Effort(600); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const auto below = [&](int most) { return static_cast<int>(random() % most); };
    const Profile profile = RandomProfile(random);
    const int gpus_times = 1 + below(8);
    const Server server = RandomServer(random, profile, 8);
    const int batch = server.gpu_count() * gpus_times;
    const Costs costs(profile, batch);
    Shape shape;
    shape.mode = below(2) == 0 ? Mode::kPipeline : Mode::kDataParallel;
    const int share = shape.mode == Mode::kPipeline ? batch : gpus_times;
    shape.fused_first = below(profile.layer_count());
    shape.forward_count = 1 + below(share);
    shape.backward_count = below(2) == 0 ? shape.forward_count : 1 + below(share);
    shape.fused_count = 1 + below(share);
    for (int layer = 0; layer < shape.fused_first; ++layer) {
      if (layer == 0 || below(3) == 0) shape.forward.push_back(layer);
      if (layer == 0 || below(3) == 0) shape.backward.push_back(layer);
    }
    Plan plan = PlanOf(costs, server, shape, batch);
    for (Task& task : plan.tasks) {
      const bool is_fused = task.pack.first == shape.fused_first;
      if (!is_fused && below(3) == 0) {
        task.segments = {task.pack.first};
        for (int layer = task.pack.first + 1; layer <= task.pack.last; ++layer) {
          if (below(2) == 0) task.segments.push_back(layer);
        }
      }
      if (task.is_backward() && !is_fused && shape.forward_count == shape.backward_count &&
          (shape.mode == Mode::kDataParallel || server.gpu_count() == 1)) {
        const std::size_t segments = std::max<std::size_t>(1, task.segments.size());
        for (std::size_t i = 0; i < segments; ++i) {
          task.keep.push_back(static_cast<Keep>(below(3)));
        }
      }
    }
    if (plan.mode == Mode::kDataParallel || server.gpu_count() == 1) {
      for (Task& task : plan.tasks) task.is_resident = task.is_backward() && below(4) == 0;
    }
    const auto schedule = Simulator(costs, server).Run(plan);
    if (!schedule.has_value()) continue;
    const absl::Status status = ValidateSchedule(costs, server, *schedule);
    EXPECT_TRUE(status.ok()) << status;
    ++valid;
  }
  EXPECT_GT(valid, static_cast<int>(Effort(600)) / 4);
}

}  // namespace
}  // namespace thimble::harmony
