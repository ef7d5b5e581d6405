// Checks schedules without trusting whoever made them: knows the plan and what its tasks need of
// each other, nothing of programs, queues or the search. Every schedule passes through here before
// it is shown.
#pragma once

#include "absl/status/status.h"
#include "allocator/offline/harmony/costs.h"
#include "allocator/offline/harmony/schedule.h"
#include "allocator/offline/harmony/server.h"

namespace thimble::harmony {

// OK if and only if
//   - the plan has every layer once forward and once backward, with all samples
//   - no stream of a GPU does two things at once
//   - every layer is computed for every sample, takes as long as it does, and begins when its
//     weights, its input and the gradient from above are there; these have been made before they
//     were sent
//   - no link carries more than it can, at any time
//   - every layer's gradient leaves once, when all its samples are in it, and is applied once
//   - memory is never above the server's (rules harmony: no pack is, by the published rule), and
//     the peaks and sums that the schedule claims are right
// Otherwise kInternal with what is wrong, in words.
[[nodiscard]] absl::Status ValidateSchedule(const Costs& costs, const Server& server,
                                            const Schedule& schedule);

}  // namespace thimble::harmony
