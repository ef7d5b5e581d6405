// Replays the requests of an event log in an arena with other options, to see whether they fit.
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
  bool reached = false;        // the end; otherwise an earlier request did not fit
  bool fits = false;           // everything, including the request that had failed
  Bytes failed_bytes = 0;      // of the request that had failed; 0 if none had
  std::uint64_t requests = 0;  // served
  Bytes peak_in_use = 0;
  Bytes peak_reserved = 0;
};

// Replays one request after the other, in the order of the log, each in its step, and waits for
// plans when a step begins. Ends at the last failed request of the log (kOom), without the frees of
// the dying program after it; if no request failed, replays the whole log. Refuses a log that
// allocates an address twice without a free.
absl::StatusOr<ReplayOutcome> ReplayLog(const std::vector<Event>& events,
                                        const ArenaOptions& options, Driver* driver);

}  // namespace thimble
