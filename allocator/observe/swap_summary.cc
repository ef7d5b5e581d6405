#include "allocator/observe/swap_summary.h"

#include "allocator/base/status_macros.h"
#include "allocator/observe/swap_problem.h"
#include "allocator/swap/planner.h"
#include "allocator/swap/schedule_csv.h"
#include "allocator/swap/validator.h"

namespace thimble {

absl::StatusOr<SwapSummary> SummarizeSwaps(const swap::Problem& problem,
                                           const swap::Settings& settings) {
  const auto& [machine, goal] = settings;
  SwapSummary summary;
  THIMBLE_ASSIGN_OR_RETURN(summary.schedule, swap::PlanSwaps(problem, machine, goal));
  THIMBLE_RETURN_IF_ERROR(swap::ValidateSchedule(problem, machine, summary.schedule));
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
    THIMBLE_RETURN_IF_ERROR(swap::WriteScheduleFile(problem, summary.schedule, schedule_path));
  }
  return summary;
}

}  // namespace thimble
