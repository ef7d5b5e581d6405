#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>
#include <vector>

#include "allocator/offline/harmony/lru.h"
#include "allocator/offline/harmony/plan_search.h"
#include "allocator/offline/harmony/published_search.h"

namespace thimble::harmony {
namespace {

constexpr double kWorkPerSecond = 100000000;  // in the simulator's units
constexpr int kRungsPerDoubling = 16;         // memory between two rungs is unused: up to 4 %
// The part of the budget for one rung, so that it lasts for eight doublings. The first rung with a
// plan gets more, because it starts from nothing.
constexpr double kPartOfRung = 1.0 / 128;
constexpr double kPartOfFirst = 1.0 / 10;
constexpr int kStride = 4;  // rungs between new published plans
// Published plans are tried with more memory than they were made for.
constexpr int kPublishedRungs = 4;
constexpr std::size_t kPublishedPlans = 8;

class Ladder {
 public:
  Ladder(const Costs& costs, const Server& server, int batch, const SearchOptions& options)
      : costs_(costs),
        server_(server),
        batch_(batch),
        options_(options),
        least_(std::max(1.0, LeastBytes(costs))),
        count_(static_cast<int>(
            std::ceil(std::log2(MostBytes(costs, batch) / least_) * kRungsPerDoubling))) {}

  std::optional<FoundPlan> Climb() {
    for (int rung = kStride * (1 - kPublishedRungs); rung < 0; rung += kStride) AddPublished(rung);
    for (int rung = 0; rung <= std::max(0, count_); ++rung) {
      if (BytesOf(rung) > server_.memory_bytes) break;
      SearchRung(rung);
    }
    return std::move(best_);
  }

 private:
  double BytesOf(int rung) const {
    return least_ * std::exp2(static_cast<double>(rung) / kRungsPerDoubling);
  }

  Server ServerOf(int rung) const {
    Server server = server_;
    server.memory_bytes = BytesOf(rung);
    return server;
  }

  void AddPublished(int rung) {
    std::vector<Shape> shapes;
    for (const Mode mode : {Mode::kDataParallel, Mode::kPipeline}) {
      if (!IsAllowed(mode, options_, server_, batch_)) continue;
      const PublishedSearch search = {mode, /*prefetch=*/true, DefaultPackers()};
      for (const Schedule& found :
           SearchPublished(costs_, ServerOf(rung), batch_, search, kPublishedPlans)) {
        shapes.push_back(ShapeOf(found.plan));
      }
    }
    carried_.published.insert(carried_.published.begin(), std::move(shapes));
    if (carried_.published.size() > kPublishedRungs) carried_.published.pop_back();
  }

  void SearchRung(int rung) {
    const Server server = ServerOf(rung);
    if (rung % kStride == 0) {
      AddPublished(rung);
      swap_limit_ =
          options_.swap_limit.has_value() ? *options_.swap_limit : DefaultSwapLimit(costs_, batch_);
    }
    const double part = carried_.refined.empty() ? kPartOfFirst : kPartOfRung;
    PlanSearch search(costs_, server, batch_, options_, swap_limit_,
                      static_cast<std::uint64_t>(part * options_.seconds * kWorkPerSecond),
                      static_cast<unsigned>(rung + 1));
    search.Search(carried_);
    if (search.best() != nullptr) Take(search);
  }

  // Ranks above cost: first that it fits on the host, then that it is within the swap limit.
  using Rank = std::tuple<bool, bool, double, double>;
  Rank RankOf(double seconds, double swap_bytes, double host_bytes) const {
    const double host = HostBytes(costs_) + host_bytes;
    const double limit = options_.swap_limit.value_or(0);
    return {server_.host_bytes > 0 && host > server_.host_bytes, limit > 0 && swap_bytes > limit,
            seconds, swap_bytes};
  }

  void Take(PlanSearch& search) {
    const Simulator::Outcome& outcome = search.best()->outcome;
    const Rank expected = RankOf(outcome.seconds, outcome.swap_bytes, outcome.host_bytes);
    if (best_.has_value() && expected >= rank_) return;
    std::optional<Schedule> schedule = search.Run(search.best()->shape);
    if (!schedule.has_value()) return;
    const Rank rank = RankOf(schedule->seconds, schedule->swap_bytes(), outcome.host_bytes);
    if (best_.has_value() && rank >= rank_) return;
    best_ = FoundPlan{*std::move(schedule), swap_limit_};
    rank_ = rank;
  }

  const Costs& costs_;
  const Server& server_;
  const int batch_;
  const SearchOptions& options_;
  const double least_;
  const int count_;  // rungs above the first
  Carried carried_;
  double swap_limit_ = 0;
  std::optional<FoundPlan> best_;
  Rank rank_;
};

}  // namespace

double DefaultSwapLimit(const Costs& costs, int batch) {
  double bytes = 4 * ModelBytes(costs);
  for (int layer = 0; layer < costs.layer_count(); ++layer) {
    bytes += 2 * costs.InputBytes(batch, layer);
  }
  return bytes;
}

std::optional<FoundPlan> SearchPlans(const Costs& costs, const Server& server, int batch,
                                     const SearchOptions& options) {
  return Ladder(costs, server, batch, options).Climb();
}

}  // namespace thimble::harmony
