#include "allocator/observe/swap_summary.h"

#include <tuple>
#include <utility>

#include "allocator/base/status_macros.h"
#include "allocator/observe/swap_problem.h"
#include "allocator/swap/parts.h"
#include "allocator/swap/planner.h"
#include "allocator/swap/schedule_csv.h"
#include "allocator/swap/validator.h"

namespace thimble {

namespace {

using Planned = std::pair<swap::Problem, swap::Schedule>;

// Whether `a` comes nearer to the goal.
bool IsBetter(const swap::Schedule& a, const swap::Schedule& b, const swap::Goal& goal) {
  if (goal.limit == 0 && a.peak_bytes != b.peak_bytes) return a.peak_bytes < b.peak_bytes;
  if (a.step_ns != b.step_ns) return a.step_ns < b.step_ns;
  return a.bytes_out + a.bytes_in < b.bytes_out + b.bytes_in;
}

// With blocks as they are, and in parts where that makes a difference.
absl::StatusOr<Planned> Plan(const swap::Problem& problem, const swap::Machine& machine,
                             const swap::Goal& goal) {
  swap::Problem parts = swap::SplitBlocks(problem);
  swap::PlanOptions options;
  const bool has_parts = parts.blocks.size() > problem.blocks.size();
  if (has_parts) options.max_work /= 2;
  absl::StatusOr<swap::Schedule> whole = swap::PlanSwaps(problem, machine, goal, options);
  if (has_parts) {
    absl::StatusOr<swap::Schedule> split = swap::PlanSwaps(parts, machine, goal, options);
    if (split.ok() && (!whole.ok() || IsBetter(*split, *whole, goal))) {
      return Planned{std::move(parts), *std::move(split)};
    }
  }
  THIMBLE_RETURN_IF_ERROR(whole.status());
  return Planned{problem, *std::move(whole)};
}

}  // namespace

absl::StatusOr<SwapSummary> SummarizeSwaps(const swap::Problem& problem,
                                           const swap::Settings& settings) {
  const swap::Goal& goal = settings.goal;
  SwapSummary summary;
  summary.machine = swap::MachineFor(problem, settings);
  const swap::Machine& machine = summary.machine;
  THIMBLE_ASSIGN_OR_RETURN(std::tie(summary.problem, summary.schedule),
                           Plan(problem, machine, goal));
  THIMBLE_RETURN_IF_ERROR(swap::ValidateSchedule(summary.problem, machine, summary.schedule));
  summary.peak_before = swap::PeakBytes(problem);
  summary.slowdown = swap::SlowdownOf(problem, summary.schedule);
  for (std::size_t i = 0; i < swap::kScores.size(); ++i) {
    const swap::Schedule schedule =
        swap::PlanAutoSwap(swap::kScores[i], problem, machine, goal.limit);
    THIMBLE_RETURN_IF_ERROR(swap::ValidateSchedule(problem, machine, schedule));
    summary.autoswap[i] = schedule.peak_bytes;
  }
  return summary;
}

absl::StatusOr<SwapSummary> PlanSwapFile(const std::string& path, const swap::Settings& settings,
                                         const std::string& schedule_path) {
  THIMBLE_ASSIGN_OR_RETURN(const swap::Problem problem, ReadSwapProblem(path));
  THIMBLE_ASSIGN_OR_RETURN(SwapSummary summary, SummarizeSwaps(problem, settings));
  if (!schedule_path.empty()) {
    THIMBLE_RETURN_IF_ERROR(
        swap::WriteScheduleFile(summary.problem, summary.schedule, schedule_path));
  }
  return summary;
}

}  // namespace thimble
