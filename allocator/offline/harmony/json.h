// Plans and schedules as JSON, for the runner and for charts.
#pragma once

#include <string>

#include "allocator/offline/harmony/report.h"
#include "allocator/offline/harmony/schedule.h"

namespace thimble::harmony {

// One object: mode, gpus, batch, rules, layers; "forward" and "backward", the packs in the order in
// which they run, each with first and last layer, gpu (-1: every one), microbatches and segments
// (their first layers); a backward pack also with "keep" and "swap", the layers whose activations
// stay on the GPU or wait on the host, "update" and "resident"; then time and bytes.
std::string PlanJson(const Schedule& schedule);

// One object: "plan" as above, and the actions as "steps", each an array of gpu, stream, kind,
// task, first and last layer, first sample and the end of them, bytes, begin and end; "streams" and
// "kinds" name numbers.
std::string ScheduleJson(const Schedule& schedule);

// {"lru_dp": {"seconds": …, "swap_bytes": …, "compute_fraction": …, "microbatch": …}, …}: those
// that exist.
std::string BaselinesJson(const Baselines& baselines);

}  // namespace thimble::harmony
