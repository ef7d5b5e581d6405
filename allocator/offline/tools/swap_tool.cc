#include "allocator/base/json.h"
#include "allocator/base/status_macros.h"
#include "allocator/offline/schedule/autoswap.h"
#include "allocator/offline/schedule/schedule_csv.h"
#include "allocator/offline/schedule/settings.h"
#include "allocator/offline/schedule/swap_problem.h"
#include "allocator/offline/schedule/swap_summary.h"
#include "allocator/offline/tools/tools.h"

namespace thimble {

absl::StatusOr<std::string> RunSwap(Arguments arguments) {
  THIMBLE_ASSIGN_OR_RETURN(const std::string trace, arguments.Need("trace"));
  THIMBLE_ASSIGN_OR_RETURN(const bool baselines, arguments.TakeSwitch("baselines"));
  const std::string path = arguments.Take("schedule");
  THIMBLE_ASSIGN_OR_RETURN(const schedule::Settings settings,
                           schedule::ReadSettings(arguments.rest()));
  THIMBLE_ASSIGN_OR_RETURN(const schedule::Problem problem, ReadSwapProblem(trace));
  THIMBLE_ASSIGN_OR_RETURN(const SwapSummary summary, SummarizeSwaps(problem, settings));
  const schedule::Schedule& found = summary.schedule;
  if (!path.empty()) {
    THIMBLE_RETURN_IF_ERROR(schedule::WriteScheduleFile(summary.problem, found, path));
  }
  JsonObject answer;
  answer.Add("peak_before", summary.peak_before)
      .Add("peak_after", found.peak_bytes)
      .Add("slowdown_ppm", summary.slowdown)
      .Add("bytes_out", found.bytes_out)
      .Add("bytes_in", found.bytes_in)
      .Add("swaps", found.swaps.size())
      .Add("bus_out", summary.machine.out_bytes_per_second)
      .Add("bus_in", summary.machine.in_bytes_per_second)
      .Add("policy", found.policy);
  if (!baselines) return answer.Text();
  JsonObject peaks;
  for (const schedule::Score score : schedule::kScores) {
    THIMBLE_ASSIGN_OR_RETURN(const std::int64_t peak,
                             AutoSwapPeak(score, problem, summary.machine, settings.goal.limit));
    peaks.Add(schedule::NameOf(score), peak);
  }
  return answer.AddRaw("autoswap", peaks.Text()).Text();
}

}  // namespace thimble
