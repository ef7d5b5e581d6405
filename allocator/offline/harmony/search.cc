#include "allocator/offline/harmony/search.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "allocator/base/bytes.h"
#include "allocator/offline/harmony/plan_search.h"

namespace thimble::harmony {
namespace {

constexpr std::uint64_t kWorkPerPlan = 5000;  // beyond its ops
// The price of swapping when plans are compared: within the limit, beyond it, and without one. In
// seconds per GiB for an iteration of a hundred seconds.
constexpr double kPrice = 0.01;
constexpr double kPriceOverLimit = 10;
constexpr double kPriceWithoutLimit = 0.0001;
constexpr std::size_t kElite = 12;  // plans to begin changes with
constexpr double kNever = std::numeric_limits<double>::infinity();

std::vector<Shape> ShapesOf(const std::vector<Candidate>& candidates) {
  std::vector<Shape> shapes;
  shapes.reserve(candidates.size());
  for (const Candidate& one : candidates) shapes.push_back(one.shape);
  return shapes;
}

}  // namespace

bool IsAllowed(Mode mode, const SearchOptions& options, const Server& server, int batch) {
  if (mode == Mode::kPipeline) return options.may_pipeline;
  const int gpus = server.gpu_count();
  return options.may_split_data && batch % gpus == 0 && (gpus > 1 || !options.may_pipeline);
}

PlanSearch::PlanSearch(const Costs& costs, const Server& server, int batch,
                       const SearchOptions& options, double swap_limit, std::uint64_t budget,
                       unsigned seed)
    : costs_(costs),
      server_(server),
      batch_(batch),
      options_(options),
      swap_limit_(swap_limit),
      gpus_(server.gpu_count()),
      simulator_(costs, server),
      budget_(budget),
      random_(seed) {}

void PlanSearch::Search(Carried& carried) {
  for (const std::vector<Shape>& shapes : carried.published) TryPublished(shapes, From(0.04));
  TryAll(carried.plain, From(0.1));
  if (elite_.empty()) Smallest();
  if (elite_.empty()) return;
  GridOfModes(0.35);
  Change(From(0.1));
  carried.plain = ShapesOf(elite_);
  is_refining_ = true;
  TryAll(carried.refined, From(0.1));
  if (options_.may_reside) StartResiding(From(0.1));
  if (options_.may_keep) StartKeeping(From(0.1));
  Change(From(0.2));
  carried.refined = ShapesOf(elite_);
}

// Plans of dp are quicker to simulate, and good ones make most others unnecessary to simulate.
void PlanSearch::GridOfModes(double part) {
  for (const Mode mode : {Mode::kDataParallel, Mode::kPipeline}) {
    const bool is_allowed = IsAllowed(mode, options_, server_, batch_);
    if (is_allowed) Grid(mode, From(part / 2));
  }
}

void PlanSearch::TryAll(const std::vector<Shape>& shapes, std::uint64_t budget) {
  for (const Shape& shape : shapes) {
    if (elite_.empty() || !IsOver(budget)) Try(shape);
  }
}

std::optional<Schedule> PlanSearch::Run(const Shape& shape) {
  return simulator_.Run(PlanOf(costs_, server_, shape, batch_));
}

std::uint64_t PlanSearch::Spent() const { return simulator_.work() + plans_ * kWorkPerPlan; }

bool PlanSearch::IsOver(std::uint64_t budget) const { return Spent() >= budget; }

double PlanSearch::Bound(const Shape& shape) const {
  return ComputeSeconds(costs_, shape, ShareOf(shape.mode)) / LanesOf(shape.mode);
}

Candidate PlanSearch::Simulate(const Shape& shape, double most) {
  constexpr double kGiBBytes = static_cast<double>(kGiB);
  Candidate one;
  one.shape = shape;
  one.outcome = simulator_.Try(PlanOf(costs_, server_, shape, batch_), most);
  const double bytes = one.outcome.swap_bytes;
  const double over = std::max(0.0, bytes - swap_limit_);
  const double price =
      swap_limit_ > 0 ? kPrice * bytes + kPriceOverLimit * over : kPriceWithoutLimit * bytes;
  one.cost = one.outcome.seconds * (1 + price / kGiBBytes / 100);
  return one;
}

bool PlanSearch::Try(const Shape& shape) {
  ++plans_;
  if (!elite_.empty() && Bound(shape) >= elite_.front().cost) return false;
  Candidate one = Simulate(shape, elite_.size() < kElite ? kNever : elite_.back().cost);
  if (one.cost == kNever) return false;
  const auto place =
      std::upper_bound(elite_.begin(), elite_.end(), one.cost,
                       [](double value, const Candidate& other) { return value < other.cost; });
  if (place != elite_.begin() && (place - 1)->cost == one.cost) return true;
  elite_.insert(place, std::move(one));
  if (elite_.size() > kElite) elite_.pop_back();
  return true;
}

}  // namespace thimble::harmony
