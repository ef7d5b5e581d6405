// Checks a schedule without trusting its maker. It knows the plan and what tasks need from each
// other, and nothing of programs, queues or the search. Every schedule is checked before it is
// shown.
#pragma once

#include "absl/status/status.h"
#include "allocator/offline/harmony/costs.h"
#include "allocator/offline/harmony/schedule.h"
#include "allocator/offline/harmony/server.h"

namespace thimble::harmony {

// OK if and only if
//   - the plan has every layer once forward and once backward, with all samples
//   - no stream of a GPU does two things at a time
//   - every layer is computed for every sample, takes its profiled time, and begins after its
//     weights, its input and the gradient from above are there; these are made before they are sent
//   - no link ever exceeds its capacity
//   - every layer's gradient leaves once, after all samples are summed, and is applied once
//   - memory never exceeds the server's (rules harmony: no pack does, by the published rule)
//   - the peaks and sums that the schedule claims are right
// Otherwise kInternal with a description of the error.
[[nodiscard]] absl::Status ValidateSchedule(const Costs& costs, const Server& server,
                                            const Schedule& schedule);

}  // namespace thimble::harmony
