#include "allocator/offline/schedule/target_search.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace thimble::schedule {
namespace {

constexpr std::uint64_t kPlaceWork = 100;  // in units of one op visited
constexpr Ns kLeastWeight = 100;           // so that ops without a duration count, too

}  // namespace

std::string Rule::Name() const {
  std::string name = next == Next::kWorst ? "worst" : "first";
  switch (by) {
    case By::kArea:
      return name + "/area";
    case By::kTime:
      return name + "/time";
    case By::kExcess:
      return name + "/excess";
    case By::kLoad:
      return name + "/load";
  }
  return name;
}

std::array<Rule, 8> AllRules() {
  using Next = Rule::Next;
  using By = Rule::By;
  return {{{Next::kWorst, By::kArea},
           {Next::kWorst, By::kTime},
           {Next::kFirst, By::kArea},
           {Next::kFirst, By::kTime},
           {Next::kWorst, By::kExcess},
           {Next::kWorst, By::kLoad},
           {Next::kFirst, By::kExcess},
           {Next::kFirst, By::kLoad}}};
}

TargetSearch::TargetSearch(const Problem& problem, const Machine& machine, const Timeline& timeline,
                           const std::vector<Window>& windows)
    : problem_(problem), machine_(machine), timeline_(timeline), windows_(windows) {
  for (const Op& op : problem.ops) op_weights_.push_back(op.ns + kLeastWeight);
}

std::int32_t TargetSearch::NextOp(const Rule& rule, std::int64_t limit,
                                  const std::vector<std::int64_t>& left) const {
  auto op = rule.next == Rule::Next::kWorst
                ? std::max_element(left.begin(), left.end())
                : std::find_if(left.begin(), left.end(),
                               [&](std::int64_t bytes) { return bytes > limit; });
  if (op == left.end() || *op <= limit) return timeline_.ops();
  return static_cast<std::int32_t>(op - left.begin());
}

TargetSearch::Wide TargetSearch::Excess(const Swap& swap, bool weighted, std::int64_t limit,
                                        const std::vector<std::int64_t>& left) {
  const std::int64_t bytes = problem_.blocks[swap.block].bytes;
  Wide sum = 0;
  for (std::int32_t op = swap.gone_from; op < swap.gone_until;) {
    const std::int32_t base = op / timeline_.ops() * timeline_.ops();
    const std::int32_t end = std::min(swap.gone_until - base, timeline_.ops());
    for (std::int32_t i = op - base; i < end; ++i) {
      const std::int64_t excess = std::clamp<std::int64_t>(left[i] - limit, 0, bytes);
      sum += weighted ? Wide{excess} * op_weights_[i] : Wide{excess};
    }
    op = base + end;
  }
  work_ += static_cast<std::uint64_t>(swap.gone_until - swap.gone_from);
  return sum;
}

TargetSearch::Wide TargetSearch::Evaluate(const Rule& rule, const Swap& swap, std::int64_t limit,
                                          const std::vector<std::int64_t>& left) {
  constexpr Wide kPrecision = 1024;
  const std::int64_t bytes = problem_.blocks[swap.block].bytes;
  const Wide duration = swap.in_ns - swap.out_ns;
  // A block that does not return costs half as much bus time as others.
  const Wide factor = swap.returns ? 1 : 2;
  if (rule.by == Rule::By::kArea) return factor * duration * bytes;
  if (rule.by == Rule::By::kTime) return factor * duration;
  const Ns copying = OutNs(machine_, bytes) + (swap.returns ? InNs(machine_, bytes) : 0);
  const Wide sum = Excess(swap, rule.by == Rule::By::kLoad, limit, left);
  return factor * sum * kPrecision / std::max<Ns>(copying, 1);
}

std::optional<Swap> TargetSearch::BestFor(std::int32_t op, const Rule& rule, std::int64_t limit,
                                          const Weights& weights, const ScheduleBuilder& builder) {
  std::optional<Swap> best;
  std::size_t best_window = 0;
  Wide best_value = -1;
  work_ += windows_.size();
  for (std::size_t i = 0; i < windows_.size(); ++i) {
    if (most_[i] <= best_value || !windows_[i].Spans(op, timeline_.ops())) continue;
    const std::optional<Swap> swap = builder.Place(windows_[i]);
    work_ += kPlaceWork;
    most_[i] = swap ? Evaluate(rule, *swap, limit, builder.left()) : -1;
    if (swap && !weights.empty()) most_[i] = most_[i] * weights[i] / kPlain;
    if (most_[i] <= best_value) continue;
    const bool helps =
        (swap->gone_from <= op && op < swap->gone_until) ||
        (swap->gone_from <= op + timeline_.ops() && op + timeline_.ops() < swap->gone_until);
    if (!helps) continue;
    best = swap;
    best_value = most_[i];
    best_window = i;
  }
  if (best) most_[best_window] = -1;
  return best;
}

ScheduleBuilder TargetSearch::Run(const Rule& rule, std::int64_t limit, const Weights& weights) {
  ScheduleBuilder builder(problem_, machine_, timeline_);
  most_.assign(windows_.size(), std::numeric_limits<Wide>::max());
  while (true) {
    work_ += builder.left().size();
    const std::int32_t op = NextOp(rule, limit, builder.left());
    if (op == timeline_.ops()) return builder;
    const std::optional<Swap> swap = BestFor(op, rule, limit, weights, builder);
    if (!swap) return builder;
    builder.Add(*swap);
  }
}

}  // namespace thimble::schedule
