// More memory never gives a slower plan: L1 to L3 of search.h, on random models and servers.
#include <algorithm>
#include <optional>
#include <random>

#include "allocator/harmony/report.h"
#include "allocator/harmony/search.h"
#include "allocator/harmony/shape.h"
#include "gtest/gtest.h"
#include "tests/harmony/models.h"

namespace thimble::harmony {
namespace {

constexpr int kMemories = 10;

// What every layer needs by itself.
double BytesOfLayers(const Costs& costs) {
  double least = 0;
  for (int layer = 0; layer < costs.layer_count(); ++layer) {
    for (const Pass pass : {Pass::kForward, Pass::kBackward}) {
      least = std::max(least, TaskBytes(costs, pass, 1, {layer, layer}));
    }
  }
  return least;
}

double WeightBytes(const Costs& costs) { return costs.WeightBytes({0, costs.layer_count() - 1}); }

// From what is hardly enough to three times what was drawn, in steps that are no rungs.
double MemoryOf(double least, double most, int i) {
  return least * 1.003 + (3 * most - least) * i * i / (kMemories * kMemories);
}

TEST(Monotone, MoreMemoryIsNeverSlower) {
  int compared = 0;
  int faster = 0;
  for (unsigned seed = 1; seed <= 12; ++seed) {
    std::mt19937 random(seed);
    const Profile profile = RandomProfile(random);
    const int batch = 1 + static_cast<int>(random() % 24);
    Server server = RandomServer(random, profile, batch);
    const Costs costs(profile, batch);
    const double most = server.memory_bytes;
    for (const std::optional<Mode> mode :
         {std::optional<Mode>(), std::optional(Mode::kDataParallel),
          std::optional(Mode::kPipeline)}) {
      Settings settings;
      settings.batch = batch;
      settings.seconds = 0.01;
      settings.mode = mode;
      if (seed % 3 == 0) settings.swap_limit = 0;
      if (mode == Mode::kDataParallel && batch % server.gpu_count() != 0) continue;
      std::optional<double> before;
      for (int i = 0; i < kMemories; ++i) {
        server.memory_bytes = MemoryOf(BytesOfLayers(costs), most, i);
        SCOPED_TRACE(testing::Message() << "seed " << seed << ", gpus " << server.gpu_count()
                                        << ", " << (mode.has_value() ? NameOf(*mode) : "auto")
                                        << ", memory " << server.memory_bytes);
        const auto report = MakeReport(profile, server, settings);
        ASSERT_TRUE(report.ok() || !before.has_value()) << report.status();
        if (!report.ok()) continue;
        if (before.has_value()) {
          EXPECT_LE(report->schedule.seconds, *before);
          faster += report->schedule.seconds < *before ? 1 : 0;
          ++compared;
        }
        before = report->schedule.seconds;
      }
    }
  }
  EXPECT_GT(compared, 150);
  EXPECT_GT(faster, 50);  // memory is of use
}

// Where a limit is given, from the first plan within it on.
TEST(Monotone, AlsoWithinASwapLimitAndHostMemory) {
  for (unsigned seed = 1; seed <= 6; ++seed) {
    std::mt19937 random(seed);
    const Profile profile = RandomProfile(random);
    const int batch = 1 + static_cast<int>(random() % 24);
    Server server = RandomServer(random, profile, batch);
    const Costs costs(profile, batch);
    const double most = server.memory_bytes;
    server.host_bytes = 5 * WeightBytes(costs) + 1e8;
    Settings settings;
    settings.batch = batch;
    settings.seconds = 0.01;
    settings.swap_limit = 12 * WeightBytes(costs) + 1e8;
    std::optional<double> before;
    for (int i = 0; i < kMemories; ++i) {
      server.memory_bytes = MemoryOf(BytesOfLayers(costs), most, i);
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", memory " << server.memory_bytes);
      const auto report = MakeReport(profile, server, settings);
      ASSERT_TRUE(report.ok() || !before.has_value()) << report.status();
      if (!report.ok() || report->schedule.swap_bytes() > *settings.swap_limit) {
        EXPECT_FALSE(before.has_value());
        continue;
      }
      EXPECT_LE(report->schedule.seconds, before.value_or(report->schedule.seconds));
      before = report->schedule.seconds;
    }
  }
}

}  // namespace
}  // namespace thimble::harmony
