// A schedule as text, one line per swap, in the order in which blocks leave:
//
//   block,key,bytes,offset,after,before,returns,gone_from,gone_until,out_ns,in_ns
//
// block: its number in the recording, counted by allocations. Ops are written name#occurrence, with
// "+1" behind them for the next step (and "+2" for the one after it). schedule.h says what they
// mean.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "allocator/offline/schedule/problem.h"
#include "allocator/offline/schedule/schedule.h"

namespace thimble::schedule {

std::string ScheduleText(const Problem& problem, const Schedule& schedule);

// kUnavailable if the file cannot be written.
absl::Status WriteScheduleFile(const Problem& problem, const Schedule& schedule,
                               const std::string& path);

}  // namespace thimble::schedule
