// The part of the C interface that reads and writes files: logs, plans, schedules.
#include <algorithm>
#include <cmath>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "allocator/arena/options.h"
#include "allocator/arena/replay.h"
#include "allocator/base/status_macros.h"
#include "allocator/base/whole_file.h"
#include "allocator/c_status.h"
#include "allocator/driver/host_driver.h"
#include "allocator/harmony/json.h"
#include "allocator/harmony/report.h"
#include "allocator/harmony/settings.h"
#include "allocator/observe/log_columns.h"
#include "allocator/observe/log_reader.h"
#include "allocator/observe/log_summary.h"
#include "allocator/observe/swap_summary.h"
#include "allocator/plan/csv.h"
#include "allocator/plan/solver.h"
#include "allocator/plan/validator.h"
#include "allocator/swap/settings.h"
#include "allocator/thimble.h"

namespace thimble {
namespace {

thimble_plan_info ToC(const plan::Plan& plan) {
  thimble_plan_info out = {};
  out.buffers = plan.offsets.size();
  out.height = static_cast<uint64_t>(plan.height);
  out.lower_bound = static_cast<uint64_t>(plan.lower_bound);
  return out;
}

thimble_swap_info ToC(const SwapSummary& summary) {
  thimble_swap_info out = {};
  out.peak_before = static_cast<uint64_t>(summary.peak_before);
  out.peak_after = static_cast<uint64_t>(summary.schedule.peak_bytes);
  out.slowdown_ppm = static_cast<uint64_t>(summary.slowdown);
  out.bytes_out = static_cast<uint64_t>(summary.schedule.bytes_out);
  out.bytes_in = static_cast<uint64_t>(summary.schedule.bytes_in);
  out.swaps = summary.schedule.swaps.size();
  out.bus_out = static_cast<uint64_t>(summary.machine.out_bytes_per_second);
  out.bus_in = static_cast<uint64_t>(summary.machine.in_bytes_per_second);
  out.peak_doa = static_cast<uint64_t>(summary.autoswap[0]);
  out.peak_aoa = static_cast<uint64_t>(summary.autoswap[1]);
  out.peak_wdoa = static_cast<uint64_t>(summary.autoswap[2]);
  out.peak_swdoa = static_cast<uint64_t>(summary.autoswap[3]);
  summary.schedule.policy.copy(out.policy, sizeof(out.policy) - 1);
  return out;
}

uint64_t Scaled(double value, double scale) {
  return std::isfinite(value) ? static_cast<uint64_t>(std::llround(value * scale)) : 0;
}

thimble_harmony_info ToC(const harmony::Report& report) {
  constexpr double kNs = 1e9;
  constexpr double kMillionths = 1e6;
  const harmony::Schedule& schedule = report.schedule;
  thimble_harmony_info out = {};
  out.ns = Scaled(schedule.seconds, kNs);
  out.swap_in_bytes = Scaled(schedule.in_bytes, 1);
  out.swap_out_bytes = Scaled(schedule.out_bytes, 1);
  out.p2p_bytes = Scaled(schedule.peer_bytes, 1);
  out.peak_bytes =
      Scaled(*std::max_element(schedule.peak_bytes.begin(), schedule.peak_bytes.end()), 1);
  out.compute_ppm = Scaled(schedule.compute_fraction, kMillionths);
  out.bound_ns = Scaled(report.compute_bound, kNs);
  out.swap_limit = Scaled(report.swap_limit, 1);
  out.forward_packs = static_cast<uint64_t>(schedule.plan.forward_count());
  out.backward_packs = schedule.plan.tasks.size() - out.forward_packs;
  out.is_pipeline = schedule.plan.mode == harmony::Mode::kPipeline ? 1 : 0;
  uint64_t* field = &out.lru_dp_ns;  // three for each baseline, in their order
  for (const auto& baseline : report.baselines) {
    if (baseline.has_value()) {
      field[0] = Scaled(baseline->seconds, kNs);
      field[1] = Scaled(baseline->swap_bytes, 1);
      field[2] = Scaled(baseline->compute_fraction, kMillionths);
    }
    field += 3;
  }
  return out;
}

thimble_log_info ToC(const LogSummary& summary) {
  thimble_log_info out = {};
  out.events = summary.events;
  out.allocations = summary.allocations;
  out.peak_in_use = summary.peak_in_use;
  out.reserved_at_start = summary.reserved_at_start;
  out.peak_reserved = summary.peak_reserved;
  out.reserved_at_peak = summary.reserved_at_peak;
  out.stitches = summary.stitches;
  out.complete = summary.complete ? 1 : 0;
  out.steps = summary.steps;
  out.plan_requests = summary.plan_requests;
  out.plan_hits = summary.plan_hits;
  out.plan_repeats = summary.plan_repeats;
  out.swap_out_bytes = summary.swap_out_bytes;
  out.swap_in_bytes = summary.swap_in_bytes;
  out.swap_wait_ns = summary.swap_wait_ns;
  out.peak_swapped = summary.peak_swapped;
  out.limit = summary.limit;
  out.out_of_memory = summary.out_of_memory;
  out.duration_ns = summary.duration_ns;
  out.damaged_at = summary.damaged_at;
  out.swapped_at_peak = summary.swapped_at_peak;
  summary.note.copy(out.note, sizeof(out.note) - 1);
  return out;
}

}  // namespace
}  // namespace thimble

using thimble::Guard;
using thimble::NullArgument;

extern "C" {

thimble_status thimble_log_convert(const char* log, const char* trace, thimble_log_info* info) {
  if (log == nullptr) return NullArgument("log");
  return Guard([&]() -> absl::Status {
    THIMBLE_ASSIGN_OR_RETURN(const thimble::LogSummary summary,
                             thimble::ConvertLog(log, trace == nullptr ? "" : trace));
    if (info == nullptr) return absl::OkStatus();
    return thimble::CopyOut(thimble::ToC(summary), info);
  });
}

thimble_status thimble_replay_log(const char* log, const char* options, thimble_replay_info* info) {
  if (log == nullptr) return NullArgument("log");
  if (info == nullptr) return NullArgument("info");
  return Guard([&]() -> absl::Status {
    THIMBLE_ASSIGN_OR_RETURN(const auto parsed,
                             thimble::ParseOptions(options == nullptr ? "" : options));
    if (parsed.arena.limit == 0) {
      return absl::InvalidArgumentError("a replay needs a limit: add limit:8GiB to the options");
    }
    THIMBLE_ASSIGN_OR_RETURN(const auto events, thimble::ReadEventLog(log));
    thimble::HostOptions host;
    host.total_bytes = thimble::RoundUp(parsed.arena.limit, host.granularity);
    host.granularity = std::min(host.granularity, parsed.arena.chunk_bytes);
    THIMBLE_ASSIGN_OR_RETURN(const auto driver, thimble::HostDriver::Open(host));
    THIMBLE_ASSIGN_OR_RETURN(const auto outcome,
                             thimble::ReplayLog(events, parsed.arena, driver.get()));
    return thimble::CopyOut(
        thimble_replay_info{0, outcome.reached ? 1U : 0U, outcome.fits ? 1U : 0U,
                            outcome.failed_bytes, outcome.requests, outcome.peak_in_use,
                            outcome.peak_reserved},
        info);
  });
}

thimble_status thimble_report_file(const char* log, const char* columns, thimble_log_info* info) {
  if (log == nullptr) return NullArgument("log");
  if (columns == nullptr) return NullArgument("columns");
  return Guard([&]() -> absl::Status {
    THIMBLE_ASSIGN_OR_RETURN(const thimble::LogSummary summary,
                             thimble::WriteLogColumns(log, columns));
    if (info == nullptr) return absl::OkStatus();
    return thimble::CopyOut(thimble::ToC(summary), info);
  });
}

thimble_status thimble_plan_file(const char* problem, const char* plan, double seconds,
                                 uint64_t seed, thimble_plan_info* info) {
  if (problem == nullptr) return NullArgument("problem");
  return Guard([&]() -> absl::Status {
    if (!(seconds >= 0 && seconds <= thimble::plan::kMostSeconds)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "seconds ", seconds, " is not a number from 0 to ", thimble::plan::kMostSeconds));
    }
    THIMBLE_ASSIGN_OR_RETURN(const auto named, thimble::plan::ReadProblemFile(problem));
    thimble::plan::SolveOptions options;
    options.seconds = seconds;
    options.seed = seed;
    const thimble::plan::Plan found = thimble::plan::Solve(named.problem, options);
    THIMBLE_RETURN_IF_ERROR(thimble::plan::ValidatePlan(named.problem, found));
    if (plan != nullptr) {
      THIMBLE_RETURN_IF_ERROR(thimble::plan::WritePlanFile(named.ids, found, plan));
    }
    if (info == nullptr) return absl::OkStatus();
    return thimble::CopyOut(thimble::ToC(found), info);
  });
}

thimble_status thimble_swap_file(const char* trace, const char* schedule, const char* options,
                                 thimble_swap_info* info) {
  if (trace == nullptr) return NullArgument("trace");
  return Guard([&]() -> absl::Status {
    THIMBLE_ASSIGN_OR_RETURN(const auto settings,
                             thimble::swap::ParseSettings(options == nullptr ? "" : options));
    THIMBLE_ASSIGN_OR_RETURN(
        const auto summary,
        thimble::PlanSwapFile(trace, settings, schedule == nullptr ? "" : schedule));
    if (info == nullptr) return absl::OkStatus();
    return thimble::CopyOut(thimble::ToC(summary), info);
  });
}

thimble_status thimble_harmony_file(const char* profile, const char* topology, const char* options,
                                    const char* plan, const char* schedule,
                                    thimble_harmony_info* info) {
  if (profile == nullptr) return NullArgument("profile");
  return Guard([&]() -> absl::Status {
    THIMBLE_ASSIGN_OR_RETURN(const auto settings,
                             thimble::harmony::ParseSettings(options == nullptr ? "" : options));
    THIMBLE_ASSIGN_OR_RETURN(const auto report,
                             thimble::harmony::MakeReportOfFiles(
                                 profile, topology == nullptr ? "" : topology, settings));
    if (plan != nullptr) {
      THIMBLE_RETURN_IF_ERROR(
          thimble::WriteWholeFile(thimble::harmony::PlanJson(report.schedule), plan));
    }
    if (schedule != nullptr) {
      THIMBLE_RETURN_IF_ERROR(
          thimble::WriteWholeFile(thimble::harmony::ScheduleJson(report.schedule), schedule));
    }
    if (info == nullptr) return absl::OkStatus();
    return thimble::CopyOut(thimble::ToC(report), info);
  });
}

}  // extern "C"
