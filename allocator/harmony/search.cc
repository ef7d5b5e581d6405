#include "allocator/harmony/search.h"

#include <algorithm>
#include <limits>

#include "allocator/base/bytes.h"
#include "allocator/harmony/plan_search.h"

namespace thimble::harmony {
namespace {

constexpr double kWorkPerSecond = 100000000;  // as the simulator counts it
constexpr std::uint64_t kWorkPerPlan = 5000;  // beside that
// What a byte that is swapped costs in a comparison of plans, one beyond the limit, and one where
// there is none: in seconds per GiB, of an iteration of a hundred seconds.
constexpr double kPrice = 0.01;
constexpr double kPriceOverLimit = 10;
constexpr double kPriceWithoutLimit = 0.0001;
constexpr std::size_t kElite = 12;  // plans that changes begin with
constexpr double kNever = std::numeric_limits<double>::infinity();

}  // namespace

PlanSearch::PlanSearch(const Costs& costs, const Server& server, int batch,
                       const SearchOptions& options)
    : costs_(costs),
      server_(server),
      batch_(batch),
      options_(options),
      gpus_(server.gpu_count()),
      simulator_(costs, server),
      budget_(static_cast<std::uint64_t>(options.seconds * kWorkPerSecond)) {}

std::optional<Schedule> PlanSearch::Run() {
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
    Grid(mode, PartOf(share));
  }
  if (elite_.empty()) Smallest();
  if (elite_.empty()) return std::nullopt;
  Change(PartOf(0.55));
  is_refining_ = true;
  if (options_.may_reside) StartResiding(PartOf(0.65));
  if (options_.may_keep) StartKeeping(PartOf(0.8));
  Change(budget_);
  return simulator_.Run(PlanOf(costs_, server_, elite_.front().shape, batch_));
}

bool PlanSearch::IsAllowed(Mode mode) const {
  if (mode == Mode::kPipeline) return options_.may_pipeline;
  return options_.may_split_data && batch_ % gpus_ == 0 && (gpus_ > 1 || !options_.may_pipeline);
}

std::uint64_t PlanSearch::Spent() const { return simulator_.work() + plans_ * kWorkPerPlan; }

bool PlanSearch::IsOver(std::uint64_t budget) const { return Spent() >= budget; }

double PlanSearch::Bound(const Shape& shape) const {
  return ComputeSeconds(costs_, shape, ShareOf(shape.mode)) / LanesOf(shape.mode);
}

double PlanSearch::Evaluate(const Shape& shape) {
  ++plans_;
  if (!elite_.empty() && Bound(shape) >= elite_.front().cost) return kNever;
  return CostOf(PlanOf(costs_, server_, shape, batch_));
}

double PlanSearch::CostOf(const Plan& plan) {
  constexpr double kGiBBytes = static_cast<double>(kGiB);
  const Simulator::Outcome outcome = simulator_.Try(plan);
  const double over = std::max(0.0, outcome.swap_bytes - options_.swap_limit);
  const double price = options_.swap_limit > 0
                           ? kPrice * outcome.swap_bytes + kPriceOverLimit * over
                           : kPriceWithoutLimit * outcome.swap_bytes;
  return outcome.seconds * (1 + price / kGiBBytes / 100);
}

bool PlanSearch::Try(const Shape& shape) {
  const double cost = Evaluate(shape);
  if (cost == kNever) return false;
  const auto place =
      std::upper_bound(elite_.begin(), elite_.end(), cost,
                       [](double value, const Candidate& one) { return value < one.cost; });
  if (place != elite_.begin() && (place - 1)->cost == cost) return true;
  elite_.insert(place, {cost, shape});
  if (elite_.size() > kElite) elite_.pop_back();
  return true;
}

std::optional<Schedule> SearchPlans(const Costs& costs, const Server& server, int batch,
                                    const SearchOptions& options) {
  return PlanSearch(costs, server, batch, options).Run();
}

}  // namespace thimble::harmony
