#include "allocator/harmony/search.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <limits>
#include <random>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "allocator/base/bytes.h"
#include "allocator/harmony/published_search.h"
#include "allocator/harmony/shape.h"
#include "allocator/harmony/simulator.h"

namespace thimble::harmony {
namespace {

constexpr double kWorkPerSecond = 4500000;   // in ops of the simulator
constexpr std::uint64_t kWorkPerPlan = 300;  // beside its ops
constexpr double kMostOverTime = 1.6;        // of a machine that is slower than that
// What a byte that is swapped costs in a comparison of plans, and one beyond the limit: in seconds
// per GiB, of an iteration of a hundred seconds.
constexpr double kPrice = 0.01;
constexpr double kPriceOverLimit = 10;
constexpr std::size_t kElite = 12;  // plans that changes begin with
constexpr double kNever = std::numeric_limits<double>::infinity();

struct Candidate {
  double cost = kNever;
  Shape shape;
};

class Search {
 public:
  Search(const Costs& costs, const Server& server, int batch, const SearchOptions& options)
      : costs_(costs),
        server_(server),
        batch_(batch),
        options_(options),
        gpus_(server.gpu_count()),
        simulator_(costs, server),
        budget_(static_cast<std::uint64_t>(options.seconds * kWorkPerSecond)),
        deadline_(std::chrono::steady_clock::now() +
                  std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                      std::chrono::duration<double>(options.seconds * kMostOverTime))) {}

  std::optional<Schedule> Run() {
    for (const Mode mode : {Mode::kDataParallel, Mode::kPipeline}) {
      if (!IsAllowed(mode)) continue;
      Seeds(mode);
    }
    const double modes = IsAllowed(Mode::kPipeline) && IsAllowed(Mode::kDataParallel) ? 2 : 1;
    double share = 0;
    // Plans of dp are the quicker ones to run, and good ones spare a look at most others.
    for (const Mode mode : {Mode::kDataParallel, Mode::kPipeline}) {
      if (!IsAllowed(mode)) continue;
      share += 0.5 / modes;
      Grid(mode, static_cast<std::uint64_t>(budget_ * share));
    }
    if (elite_.empty()) Smallest();
    if (elite_.empty()) return std::nullopt;
    Change(static_cast<std::uint64_t>(budget_ * 0.85));
    return simulator_.Run(Keep(elite_.front()));
  }

 private:
  bool IsAllowed(Mode mode) const {
    if (mode == Mode::kPipeline) return options_.may_pipeline;
    return options_.may_split_data && batch_ % gpus_ == 0 && (gpus_ > 1 || !options_.may_pipeline);
  }
  int ShareOf(Mode mode) const { return mode == Mode::kPipeline ? batch_ : batch_ / gpus_; }
  int LanesOf(Mode mode) const { return mode == Mode::kPipeline ? gpus_ : 1; }

  std::uint64_t Spent() const { return simulator_.work() + plans_ * kWorkPerPlan; }
  bool IsOver(std::uint64_t budget) const {
    return Spent() >= budget || std::chrono::steady_clock::now() > deadline_;
  }

  double Bound(const Shape& shape) const {
    return ComputeSeconds(costs_, shape, ShareOf(shape.mode)) / LanesOf(shape.mode);
  }
  double Evaluate(const Shape& shape) {
    ++plans_;
    if (!elite_.empty() && Bound(shape) >= elite_.front().cost) return kNever;
    return CostOf(PlanOf(costs_, server_, shape, batch_));
  }
  // Seconds, and what is swapped as some more.
  double CostOf(const Plan& plan) {
    constexpr double kGiBBytes = static_cast<double>(kGiB);
    const Simulator::Outcome outcome = simulator_.Try(plan);
    double price = kPrice * outcome.swap_bytes;
    if (options_.swap_limit > 0) {
      price += kPriceOverLimit * std::max(0.0, outcome.swap_bytes - options_.swap_limit);
    }
    return outcome.seconds * (1 + price / kGiBBytes / 100);
  }
  void Try(const Shape& shape);
  void Seeds(Mode mode);
  void Grid(Mode mode, std::uint64_t budget);
  void Smallest();
  void Change(std::uint64_t budget);
  Plan Keep(const Candidate& best);
  bool ChangeOnce(Shape& shape);

  int Random(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }

  const Costs& costs_;
  const Server& server_;
  const int batch_;
  const SearchOptions options_;
  const int gpus_;
  Simulator simulator_;
  const std::uint64_t budget_;
  const std::chrono::steady_clock::time_point deadline_;
  std::uint64_t plans_ = 0;
  std::vector<Candidate> elite_;  // best first
  std::mt19937 random_{1};
};

void Search::Try(const Shape& shape) {
  const double cost = Evaluate(shape);
  if (cost == kNever) return;
  const auto place =
      std::upper_bound(elite_.begin(), elite_.end(), cost,
                       [](double value, const Candidate& one) { return value < one.cost; });
  if (place != elite_.begin() && (place - 1)->cost == cost) return;
  elite_.insert(place, {cost, shape});
  if (elite_.size() > kElite) elite_.pop_back();
}

void Search::Seeds(Mode mode) {
  PublishedSearch search;
  search.mode = mode;
  search.prefetch = true;
  search.packers = PackerSet::kAll;
  for (const double part : {1.0, 0.9, 0.8, 0.6}) {
    Server smaller = server_;
    smaller.memory_bytes *= part;
    for (const Schedule& found : SearchPublished(costs_, smaller, batch_, search, 8)) {
      Try(ShapeOf(found.plan));
    }
  }
}

void Search::Grid(Mode mode, std::uint64_t budget) {
  constexpr int kFusedSizes = 6;
  const int share = ShareOf(mode);
  const int layers = costs_.layer_count();
  const std::vector<int> counts = Counts(share, costs_.largest());
  struct Point {
    double bound = 0;
    int fused_first = 0;
    int forward = 0;
    int backward = 0;
    int fused = 0;
  };
  std::vector<Point> points;
  for (const int fused : counts) {
    const int first = LargestFused(costs_, EvenSplit(share, fused)[0], server_.memory_bytes);
    if (first == layers) continue;
    for (int i = 0; i < kFusedSizes; ++i) {
      const int at = first + (layers - 1 - first) * i / kFusedSizes;
      for (const int backward : counts) {
        for (const int forward : counts) {
          Shape shape;
          shape.mode = mode;
          shape.fused_first = at;
          shape.forward_count = forward;
          shape.backward_count = backward;
          shape.fused_count = fused;
          // Fewer microbatches than GPUs leave some of them without work.
          const int least = std::min({fused, backward, forward});
          const double idle = std::max(1.0, static_cast<double>(LanesOf(mode)) / least);
          points.push_back({Bound(shape) * idle, at, forward, backward, fused});
          if (at == 0) break;
        }
        if (at == 0) break;
      }
      if (first == layers - 1) break;
    }
  }
  std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) {
    return std::tie(a.bound, a.fused_first, a.forward, a.backward, a.fused) <
           std::tie(b.bound, b.fused_first, b.forward, b.backward, b.fused);
  });
  constexpr double kGrowths[] = {1, 1.05, 1.1, 1.2, 1.35, 1.6};
  const auto growth = [&] { return kGrowths[Random(static_cast<int>(std::size(kGrowths)))]; };
  while (!points.empty() && !IsOver(budget)) {
    // Those with the least to compute more often.
    const int x = Random(1 << 10);
    const std::size_t chosen = points.size() * x / (1 << 10) * x / (1 << 10);
    const Point& point = points[chosen];
    Shape shape;
    shape.mode = mode;
    shape.fused_first = point.fused_first;
    shape.forward_count = point.forward;
    shape.backward_count = point.backward;
    shape.fused_count = point.fused;
    if (point.fused_first > 0) {
      const int most = std::min(point.fused_first, 24 * LanesOf(mode) / 2 + 6);
      shape.forward = CutTapered(costs_, Pass::kForward, EvenSplit(share, point.forward)[0],
                                 point.fused_first, 1 + Random(most), growth());
      shape.backward = CutTapered(costs_, Pass::kBackward, EvenSplit(share, point.backward)[0],
                                  point.fused_first, 1 + Random(most), growth());
    }
    Try(shape);
  }
}

// What needs the least memory: packs of one layer, from one sample at a time on.
void Search::Smallest() {
  const int layers = costs_.layer_count();
  for (const Mode mode : {Mode::kPipeline, Mode::kDataParallel}) {
    if (!IsAllowed(mode)) continue;
    const std::vector<int> counts = Counts(ShareOf(mode), costs_.largest());
    for (auto count = counts.rbegin(); count != counts.rend() && !IsOver(budget_); ++count) {
      Shape shape;
      shape.mode = mode;
      shape.boundaries_on_host = true;
      shape.fused_first = layers - 1;
      shape.forward_count = shape.backward_count = shape.fused_count = *count;
      for (int layer = 0; layer + 1 < layers; ++layer) shape.forward.push_back(layer);
      shape.backward = shape.forward;
      Try(shape);
      if (!elite_.empty()) return;
    }
  }
}

// A border moves by a power of two of layers; `ends` begin with 0 and stay below `limit`.
bool MoveBorder(std::vector<int>& firsts, int limit, int which, int by) {
  if (which == 0 || which >= static_cast<int>(firsts.size())) return false;
  const int next = which + 1 < static_cast<int>(firsts.size()) ? firsts[which + 1] : limit;
  const int at = firsts[which] + by;
  if (at <= firsts[which - 1] || at >= next) return false;
  firsts[which] = at;
  return true;
}

bool Search::ChangeOnce(Shape& shape) {
  const int layers = costs_.layer_count();
  const int reach = layers > 200 ? 5 : 4;
  const int by = (1 << Random(reach)) * (Random(2) == 0 ? 1 : -1);
  const int kind = Random(16);
  if (kind < 6 || kind < 11) {
    std::vector<int>& firsts = kind < 6 ? shape.backward : shape.forward;
    if (firsts.size() < 2) return false;
    return MoveBorder(firsts, shape.fused_first, 1 + Random(static_cast<int>(firsts.size()) - 1),
                      by);
  }
  if (kind == 11) {
    const int at = shape.fused_first + by;
    if (shape.forward.empty() || at <= shape.forward.back() || at <= shape.backward.back() ||
        at >= layers) {
      return false;
    }
    shape.fused_first = at;
    return true;
  }
  if (kind <= 13) {
    int& count = kind == 12 ? (Random(2) == 0 ? shape.forward_count : shape.backward_count)
                            : shape.fused_count;
    const int next = count + (Random(2) == 0 ? 1 : -1);
    const int share = ShareOf(shape.mode);
    if (next < 1 || next > share || EvenSplit(share, next)[0] > costs_.largest()) return false;
    count = next;
    return true;
  }
  std::vector<int>& firsts = Random(2) == 0 ? shape.backward : shape.forward;
  if (firsts.empty()) return false;
  const int which = Random(static_cast<int>(firsts.size()));
  if (kind == 14) {  // two become one
    if (which == 0) return false;
    firsts.erase(firsts.begin() + which);
    return true;
  }
  const int next =
      which + 1 < static_cast<int>(firsts.size()) ? firsts[which + 1] : shape.fused_first;
  if (next - firsts[which] < 2) return false;
  firsts.insert(firsts.begin() + which + 1, firsts[which] + 1 + Random(next - firsts[which] - 1));
  return true;
}

// Climbs from each of the best in turn; when nothing helps for long, from the next one.
void Search::Change(std::uint64_t budget) {
  constexpr int kPatience = 400;
  const std::vector<Candidate> starts = elite_;
  std::size_t start = 0;
  Candidate current = starts[0];
  int stale = 0;
  while (!IsOver(budget)) {
    Shape shape = current.shape;
    const int changes = 1 + Random(3);
    bool has_changed = false;
    for (int i = 0; i < changes; ++i) has_changed |= ChangeOnce(shape);
    ++stale;
    if (has_changed) {
      ++plans_;
      if (Bound(shape) < current.cost) {
        const double cost = CostOf(PlanOf(costs_, server_, shape, batch_));
        if (cost <= current.cost) {
          if (cost < current.cost) stale = 0;
          current = {cost, shape};
          if (cost < elite_.front().cost) elite_.front() = current;
        }
      }
    }
    if (stale <= kPatience) continue;
    start = (start + 1) % starts.size();
    current = start == 0 ? elite_.front() : starts[start];
    stale = 0;
  }
}

// Whose forward is on its GPU, with its microbatches.
bool MayKeep(const Plan& plan, int task) {
  const Task& later = plan.tasks[task];
  for (int t = 0; t < plan.fused(); ++t) {
    const Task& one = plan.tasks[t];
    if (one.pack.last < later.pack.first || one.pack.first > later.pack.last) continue;
    if (one.gpu != later.gpu || one.microbatches != later.microbatches) return false;
  }
  return true;
}

void HalveSegments(Task& task) {
  std::vector<int> firsts;
  for (const Pack& segment : SegmentsDown(task)) {
    const int middle = (segment.first + segment.last + 1) / 2;
    if (middle > segment.first) firsts.push_back(middle);
    firsts.push_back(segment.first);
  }
  task.segments.assign(firsts.rbegin(), firsts.rend());
}

Plan Search::Keep(const Candidate& best) {
  Plan plan = PlanOf(costs_, server_, best.shape, batch_);
  double cost = best.cost;
  const int tasks = static_cast<int>(plan.tasks.size());
  for (int by = 32; by > 0; by /= 2) {
    for (int t = plan.fused() + 1; t < tasks && !IsOver(budget_); ++t) {
      if (!MayKeep(plan, t)) continue;
      // On the GPU, on the host, and on the host with shorter segments, which leave room for more.
      for (const int way : {0, 1, 2}) {
        const bool on_host = way > 0;
        Plan other = plan;
        Task& task = other.tasks[t];
        if (task.kept_layers > 0 && task.kept_on_host != on_host) continue;
        task.kept_layers += by;
        task.kept_on_host = on_host;
        if (task.kept_layers > task.pack.last - task.pack.first + 1) continue;
        if (way == 2) HalveSegments(task);
        ++plans_;
        const double changed = CostOf(other);
        if (changed >= cost) continue;
        cost = changed;
        plan = other;
      }
    }
  }
  return plan;
}

}  // namespace

std::optional<Schedule> SearchPlans(const Costs& costs, const Server& server, int batch,
                                    const SearchOptions& options) {
  return Search(costs, server, batch, options).Run();
}

}  // namespace thimble::harmony
