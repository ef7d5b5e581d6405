#include "allocator/offline/schedule/swap_summary.h"

#include <tuple>
#include <utility>

#include "allocator/base/status_macros.h"
#include "allocator/offline/schedule/parts.h"
#include "allocator/offline/schedule/planner.h"
#include "allocator/offline/schedule/validator.h"

namespace thimble {

namespace {

using Planned = std::pair<schedule::Problem, schedule::Schedule>;

// Whether `a` is closer to the goal than `b`.
bool IsBetter(const schedule::Schedule& a, const schedule::Schedule& b,
              const schedule::Goal& goal) {
  if (goal.limit == 0 && a.peak_bytes != b.peak_bytes) return a.peak_bytes < b.peak_bytes;
  if (a.step_ns != b.step_ns) return a.step_ns < b.step_ns;
  return a.bytes_out + a.bytes_in < b.bytes_out + b.bytes_in;
}

// Plans with whole blocks, and with parts if some block is large enough.
absl::StatusOr<Planned> Plan(const schedule::Problem& problem, const schedule::Machine& machine,
                             const schedule::Goal& goal) {
  schedule::Problem parts = schedule::SplitBlocks(problem);
  schedule::PlanOptions options;
  const bool has_parts = parts.blocks.size() > problem.blocks.size();
  if (has_parts) options.max_work /= 2;
  absl::StatusOr<schedule::Schedule> whole = schedule::PlanSwaps(problem, machine, goal, options);
  if (has_parts) {
    absl::StatusOr<schedule::Schedule> split = schedule::PlanSwaps(parts, machine, goal, options);
    if (split.ok() && (!whole.ok() || IsBetter(*split, *whole, goal))) {
      return Planned{std::move(parts), *std::move(split)};
    }
  }
  THIMBLE_RETURN_IF_ERROR(whole.status());
  return Planned{problem, *std::move(whole)};
}

}  // namespace

absl::StatusOr<SwapSummary> SummarizeSwaps(const schedule::Problem& problem,
                                           const schedule::Settings& settings) {
  const schedule::Goal& goal = settings.goal;
  SwapSummary summary;
  summary.machine = schedule::MachineFor(problem, settings);
  const schedule::Machine& machine = summary.machine;
  THIMBLE_ASSIGN_OR_RETURN(std::tie(summary.problem, summary.schedule),
                           Plan(problem, machine, goal));
  THIMBLE_RETURN_IF_ERROR(schedule::ValidateSchedule(summary.problem, machine, summary.schedule));
  summary.peak_before = schedule::PeakBytes(problem);
  summary.slowdown = schedule::SlowdownOf(problem, summary.schedule);
  return summary;
}

absl::StatusOr<std::int64_t> AutoSwapPeak(schedule::Score score, const schedule::Problem& problem,
                                          const schedule::Machine& machine, std::int64_t limit) {
  const schedule::Schedule found = schedule::PlanAutoSwap(score, problem, machine, limit);
  THIMBLE_RETURN_IF_ERROR(schedule::ValidateSchedule(problem, machine, found));
  return found.peak_bytes;
}

}  // namespace thimble
