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

struct ReplayOutcome {
  bool reached = false;        // its end; otherwise a request before that did not fit
  bool fits = false;           // all of it, with the request that had failed
  Bytes failed_bytes = 0;      // of that request; 0 if the log has none
  std::uint64_t requests = 0;  // that were served
  Bytes peak_in_use = 0;
  Bytes peak_reserved = 0;
};

// One request after the other, in the order of the log, each in its step; plans are waited for when
// a step begins. The end is the last request of the log that failed (kOom), and what a dying
// program freed after it is left out; without one, all of the log is replayed. A log in which an
// address is allocated twice without a free is refused.
absl::StatusOr<ReplayOutcome> ReplayLog(const std::vector<Event>& events,
                                        const ArenaOptions& options, Driver* driver);

}  // namespace thimble
