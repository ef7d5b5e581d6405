// More memory never gives a slower plan: L1 to L3 of search.h, on random models and servers.
#include <algorithm>
#include <optional>
#include <random>

#include "allocator/offline/harmony/report.h"
#include "allocator/offline/harmony/search.h"
#include "allocator/offline/harmony/shape.h"
#include "gtest/gtest.h"
#include "tests/harmony/models.h"

namespace thimble::harmony {
namespace {

constexpr int kMemories = 10;

// What each layer needs alone.
double BytesOfLayers(const Costs& costs) {
  double least = 0;
  for (int layer = 0; layer < costs.layer_count(); ++layer) {
    for (const Pass pass : {Pass::kForward, Pass::kBackward}) {
      least = std::max(least, TaskBytes(costs, pass, 1, {layer, layer}));
    }
  }
  return least;
}

// A random model, and a server for it.
struct Drawn {
  explicit Drawn(unsigned seed)
      : random(seed),
        profile(RandomProfile(random)),
        batch(1 + static_cast<int>(random() % 24)),
        server(RandomServer(random, profile, batch)),
        costs(profile, batch),
        least(BytesOfLayers(costs)),
        most(server.memory_bytes) {
    settings.batch = batch;
    settings.seconds = 0.01;
  }

  // From hardly enough memory to three times the drawn one, at sizes that are not rungs.
  void SetMemory(int i) {
    server.memory_bytes = least * 1.003 + (3 * most - least) * i * i / (kMemories * kMemories);
  }

  std::mt19937 random;
  const Profile profile;
  const int batch;
  Server server;
  const Costs costs;
  const double least;
  const double most;
  Settings settings;
};

TEST(Monotone, MoreMemoryIsNeverSlower) {
  int compared = 0;
  int faster = 0;
  for (unsigned seed = 1; seed <= 5; ++seed) {
    Drawn drawn(seed);
    if (seed % 3 == 0) drawn.settings.swap_limit = 0;
    const int gpus = drawn.server.gpu_count();
    for (const std::optional<Mode> mode :
         {std::optional<Mode>(), std::optional(Mode::kDataParallel),
          std::optional(Mode::kPipeline)}) {
      if (mode == Mode::kDataParallel && drawn.batch % gpus != 0) continue;
      drawn.settings.mode = mode;
      std::optional<double> before;
      for (int i = 0; i < kMemories; ++i) {
        drawn.SetMemory(i);
        SCOPED_TRACE(testing::Message() << "seed " << seed << ", gpus " << gpus << ", "
                                        << (mode.has_value() ? NameOf(*mode) : "auto")
                                        << ", memory " << drawn.server.memory_bytes);
        const auto report = MakeReport(drawn.profile, drawn.server, drawn.settings);
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
  EXPECT_GT(compared, 60);
  EXPECT_GT(faster, 20);  // memory does help
}

// With a swap limit: from the first plan within it on.
TEST(Monotone, AlsoWithinASwapLimitAndHostMemory) {
  for (unsigned seed = 1; seed <= 3; ++seed) {
    Drawn drawn(seed);
    const double limit = 12 * ModelBytes(drawn.costs) + 1e8;
    drawn.settings.swap_limit = limit;
    drawn.server.host_bytes = 5 * ModelBytes(drawn.costs) + 1e8;
    std::optional<double> before;
    for (int i = 0; i < kMemories; ++i) {
      drawn.SetMemory(i);
      SCOPED_TRACE(testing::Message()
                   << "seed " << seed << ", memory " << drawn.server.memory_bytes);
      const auto report = MakeReport(drawn.profile, drawn.server, drawn.settings);
      ASSERT_TRUE(report.ok() || !before.has_value()) << report.status();
      if (!report.ok() || report->schedule.swap_bytes() > limit) {
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
