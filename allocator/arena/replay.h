// The requests of an event log once more, in an arena with other options: would they have fit?
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "allocator/arena/options.h"
#include "allocator/base/bytes.h"
#include "allocator/base/event.h"
#include "allocator/driver/driver.h"

namespace thimble {

// The end of a replay: a request that the log does not have, because it failed.
struct ReplayEnd {
  std::uint64_t mark = 0;  // after so many kMemory events of the log; 0: after all events
  Bytes bytes = 0;         // 0: there is none
};

struct ReplayOutcome {
  bool reached = false;  // the end; otherwise a request did not fit, or the log has no such mark
  bool fits = false;     // all of it, and the request at the end
  std::uint64_t requests = 0;  // that were served
  Bytes peak_in_use = 0;
  Bytes peak_reserved = 0;
};

// One request after the other, in the order of the log, each in its step; plans are waited for when
// a step begins. A log in which an address is allocated twice without a free is refused.
absl::StatusOr<ReplayOutcome> ReplayLog(const std::vector<Event>& events, const ReplayEnd& end,
                                        const ArenaOptions& options, Driver* driver);

}  // namespace thimble
