// Measures the cost of requests while another thread makes a plan. See --help.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "allocator/arena/arena.h"
#include "allocator/base/check.h"
#include "tests/bench/clock.h"
#include "tests/bench/device.h"
#include "tests/bench/progress.h"

namespace thimble::bench {
namespace {

constexpr char kHelp[] =
    R"(planning [--json]

Two arenas, one with plan:off and one with plan:auto, run the same steps in turn: 16,000 requests of
128 to 384 KiB by 16,000 ops, freed in the opposite order. All allocations and frees are stamped
from the third step on until a plan serves: it is learned, drafted and packed meanwhile.
  p50, p99.9, worst   of plan:auto divided by those of plan:off
)";

constexpr std::size_t kRequests = 16000;
constexpr int kMostSteps = 3000;

class Training {
 public:
  explicit Training(bool plan) : device_(8 * kGiB) {
    ArenaOptions options;
    options.plan = plan;
    auto arena = Arena::Create(options, &device_.driver());
    THIMBLE_CHECK(arena.ok(), "an arena can be made");
    arena_ = *std::move(arena);
  }

  // How long each call took.
  std::vector<std::uint64_t> Step(const std::vector<Bytes>& sizes) {
    ++step_;
    std::vector<std::uint64_t> ticks;
    ticks.reserve(2 * sizes.size());
    std::vector<Address> blocks(sizes.size());
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const std::uint64_t start = Ticks();
      const auto block = arena_->Allocate({sizes[i], 0, StreamId{1}, i + 1, step_});
      ticks.push_back(Ticks() - start);
      THIMBLE_CHECK(block.ok(), "there is room");
      blocks[i] = *block;
    }
    for (std::size_t i = sizes.size(); i-- > 0;) {
      const std::uint64_t start = Ticks();
      const bool is_freed = arena_->Free(blocks[i], StreamId{1}).ok();
      ticks.push_back(Ticks() - start);
      THIMBLE_CHECK(is_freed, "a block in use can be freed");
    }
    return ticks;
  }

  PlanStats plan() { return arena_->GetStats(); }

 private:
  Device device_;
  std::unique_ptr<Arena> arena_;
  std::uint64_t step_ = 0;
};

struct Figures {
  std::uint64_t p50;
  std::uint64_t p999;
  std::uint64_t worst;
};

Figures Summarise(std::vector<std::uint64_t> ticks) {
  std::sort(ticks.begin(), ticks.end());
  return {ticks[ticks.size() / 2], ticks[ticks.size() * 999 / 1000], ticks.back()};
}

int Run(bool json) {
  std::mt19937 random(7);
  std::vector<Bytes> sizes(kRequests);
  for (Bytes& size : sizes) size = 128 * kKiB + random() % (256 * kKiB);
  Training without(/*plan=*/false);
  Training with(/*plan=*/true);
  std::vector<std::uint64_t> all_without;
  std::vector<std::uint64_t> all_with;
  int steps = 0;
  Progress progress;
  progress.Say("while a plan is made");
  for (; steps < kMostSteps && with.plan().plans == 0; ++steps) {
    const std::vector<std::uint64_t> one = without.Step(sizes);
    const std::vector<std::uint64_t> other = with.Step(sizes);
    if (steps < 2) continue;  // memory comes from the driver
    all_without.insert(all_without.end(), one.begin(), one.end());
    all_with.insert(all_with.end(), other.begin(), other.end());
  }
  progress.Clear();
  if (steps == kMostSteps || all_with.empty()) {
    std::fputs("planning: no plan was made\n", stderr);
    return 1;
  }
  const Figures off = Summarise(std::move(all_without));
  const Figures on = Summarise(std::move(all_with));
  const auto ratio = [](std::uint64_t a, std::uint64_t b) {
    return static_cast<double>(a) / static_cast<double>(b);
  };
  const double p50 = ratio(on.p50, off.p50);
  const double p999 = ratio(on.p999, off.p999);
  const double worst = ratio(on.worst, off.worst);
  if (json) {
    absl::PrintF(
        "{\"name\": \"planning\", \"steps\": %d, \"p50_ratio\": %.6g, \"p999_ratio\": %.6g, "
        "\"worst_ratio\": %.6g}\n",
        steps, p50, p999, worst);
  } else {
    absl::PrintF(
        "while a plan is made, %d steps of %d requests: p50 %.2f, p99.9 %.2f, worst %.2f of those "
        "without plans\n",
        steps, kRequests, p50, p999, worst);
  }
  return 0;
}

}  // namespace
}  // namespace thimble::bench

int main(int argc, char** argv) {
  bool json = false;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--help" || argument == "-h") {
      std::fputs(thimble::bench::kHelp, stdout);
      return 0;
    }
    if (argument != "--json") {
      absl::FPrintF(stderr, "planning: unknown option '%s'; see --help\n", argument);
      return 2;
    }
    json = true;
  }
  return thimble::bench::Run(json);
}
