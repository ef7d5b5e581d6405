// Checks schedules independently: shares no code with the planner, and works in nanoseconds where
// the planner works in ops. Every schedule is checked here before it is used.
#pragma once

#include "absl/status/status.h"
#include "allocator/offline/schedule/machine.h"
#include "allocator/offline/schedule/problem.h"
#include "allocator/offline/schedule/schedule.h"

namespace thimble::schedule {

// OK if and only if, in a step that repeats forever,
//   - ops run one after the other and take as long as they do
//   - no op touches a block that is on its way to the host, there, or on its way back
//   - neither copy engine does two things at once
//   - never more than schedule.peak_bytes are on the device; a block that leaves takes memory until
//     its copy out has ended, and again from the beginning of its copy in
//   - the sums are right, and blocks are gone for the ops that the schedule names
// Otherwise kInternal; the message says what is wrong.
[[nodiscard]] absl::Status ValidateSchedule(const Problem& problem, const Machine& machine,
                                            const Schedule& schedule);

}  // namespace thimble::schedule
