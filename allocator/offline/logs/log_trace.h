// From the binary event log to a trace and back: addresses become ids, ids become addresses.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/base/event.h"
#include "allocator/offline/logs/trace_text.h"

namespace thimble {

// A free of a block that was allocated before the log began is left out. A log in which an address
// is allocated twice without a free is refused.
//
// Logs of arenas that swap tell ops and the large blocks they use: these become accesses. What was
// allocated since the op began is what it writes; it lasts until the next one begins. Its line is
// where the first block is freed after that, so that all its blocks are live there.
absl::StatusOr<Trace> TraceFromEvents(const std::vector<Event>& events);

// With made-up addresses, one per id, and no times; accesses are left out.
std::vector<Event> EventsFromTrace(const Trace& trace);

// A trace from a file: an event log, a log of RMM's (rmm_csv.h), or the text of a trace. A damaged
// log is refused; for one that is not complete, a line on standard error says so.
absl::StatusOr<Trace> ReadTraceOrLog(const std::string& path);

}  // namespace thimble
