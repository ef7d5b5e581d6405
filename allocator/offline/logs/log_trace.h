// Converts a binary event log to a trace and back: addresses become ids, ids become addresses.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/base/event.h"
#include "allocator/offline/logs/trace_text.h"

namespace thimble {

// Leaves out the free of a block that was allocated before the log began. Refuses a log that
// allocates an address twice without a free.
//
// Logs of arenas that swap have ops and the large blocks that they use; these become accesses. An
// op writes the blocks allocated since it began, and lasts until the next op begins. Its line comes
// before the first free after that, so that all its blocks are live there.
absl::StatusOr<Trace> TraceFromEvents(const std::vector<Event>& events);

// Invents one address per id. The events have no times; accesses are left out.
std::vector<Event> EventsFromTrace(const Trace& trace);

// Reads a trace from an event log, a log of RMM (rmm_csv.h), or a text trace. Refuses a damaged
// log, and warns on standard error of an incomplete one.
absl::StatusOr<Trace> ReadTraceOrLog(const std::string& path);

}  // namespace thimble
