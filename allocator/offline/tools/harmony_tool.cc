#include <algorithm>
#include <cmath>
#include <cstdint>

#include "allocator/base/json.h"
#include "allocator/base/status_macros.h"
#include "allocator/base/whole_file.h"
#include "allocator/offline/harmony/json.h"
#include "allocator/offline/harmony/report.h"
#include "allocator/offline/harmony/settings.h"
#include "allocator/offline/tools/tools.h"

namespace thimble {
namespace {

JsonObject ToJson(const harmony::Report& report) {
  const harmony::Schedule& schedule = report.schedule;
  const std::int64_t in = std::llround(schedule.in_bytes);
  const std::int64_t out = std::llround(schedule.out_bytes);
  const double peak = *std::max_element(schedule.peak_bytes.begin(), schedule.peak_bytes.end());
  const int forward = schedule.plan.forward_count();
  JsonObject answer;
  answer.Add("mode", NameOf(schedule.plan.mode))
      .Add("rules", NameOf(schedule.plan.rules))
      .Add("gpus", schedule.plan.gpus)
      .Add("batch", schedule.plan.batch)
      .Add("seconds", schedule.seconds)
      .Add("swap_bytes", in + out)
      .Add("swap_in_bytes", in)
      .Add("swap_out_bytes", out)
      .Add("p2p_bytes", std::llround(schedule.peer_bytes))
      .Add("compute_fraction", schedule.compute_fraction)
      .Add("peak_bytes", std::llround(peak))
      .Add("swap_limit", std::llround(report.swap_limit))
      .Add("forward_packs", forward)
      .Add("backward_packs", static_cast<int>(schedule.plan.tasks.size()) - forward);
  if (std::isfinite(report.compute_bound)) answer.Add("compute_bound", report.compute_bound);
  return answer;
}

}  // namespace

absl::StatusOr<std::string> RunHarmony(Arguments arguments) {
  THIMBLE_ASSIGN_OR_RETURN(const std::string path, arguments.Need("profile"));
  THIMBLE_ASSIGN_OR_RETURN(const bool baselines, arguments.TakeSwitch("baselines"));
  const std::string topology = arguments.Take("topology");
  const std::string plan = arguments.Take("plan");
  const std::string schedule = arguments.Take("schedule");
  THIMBLE_ASSIGN_OR_RETURN(const harmony::Settings settings,
                           harmony::ReadSettings(arguments.rest()));
  THIMBLE_ASSIGN_OR_RETURN(const harmony::Server server, harmony::ServerFor(topology, settings));
  THIMBLE_ASSIGN_OR_RETURN(const harmony::Profile profile, harmony::ReadProfileFile(path));
  THIMBLE_ASSIGN_OR_RETURN(const harmony::Report report,
                           harmony::MakeReport(profile, server, settings));
  if (!plan.empty()) {
    THIMBLE_RETURN_IF_ERROR(WriteWholeFile(harmony::PlanJson(report.schedule), plan));
  }
  if (!schedule.empty()) {
    THIMBLE_RETURN_IF_ERROR(WriteWholeFile(harmony::ScheduleJson(report.schedule), schedule));
  }
  JsonObject answer = ToJson(report);
  if (baselines) {
    answer.AddRaw("baselines",
                  harmony::BaselinesJson(harmony::MakeBaselines(profile, server, settings.batch)));
  }
  return answer.Text();
}

}  // namespace thimble
