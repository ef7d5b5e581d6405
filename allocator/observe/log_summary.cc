#include "allocator/observe/log_summary.h"

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "allocator/base/event.h"
#include "allocator/base/status_macros.h"
#include "allocator/observe/event_log.h"
#include "allocator/observe/log_trace.h"
#include "allocator/observe/trace_text.h"

namespace thimble {
namespace {

LogSummary Summarize(const std::vector<Event>& events) {
  LogSummary summary;
  summary.events = events.size();
  absl::flat_hash_map<Address, Bytes> live;
  Bytes in_use = 0;
  Bytes reserved = 0;
  for (const Event& event : events) {
    switch (event.kind) {
      case EventKind::kAllocate:
        ++summary.allocations;
        live[event.address] = event.bytes;
        in_use += event.bytes;
        if (in_use > summary.peak_in_use) {
          summary.peak_in_use = in_use;
          summary.reserved_at_peak = reserved;
        }
        break;
      case EventKind::kFree:
        if (const auto block = live.find(event.address); block != live.end()) {
          in_use -= block->second;
          live.erase(block);
        }
        break;
      case EventKind::kStep:
        ++summary.steps;
        break;
      case EventKind::kOp:
      case EventKind::kUse:
      case EventKind::kCopy:
        break;
      case EventKind::kMemory:
        reserved = event.bytes;
        if (&event == events.data()) summary.reserved_at_start = reserved;
        summary.peak_reserved = std::max(summary.peak_reserved, reserved);
        summary.stitches = event.key;
        break;
      case EventKind::kPlan:
        summary.plan_requests = event.bytes;
        summary.plan_hits = event.address;
        summary.plan_repeats = event.key;
        break;
      case EventKind::kSwap:
        summary.swap_out_bytes = event.bytes;
        summary.swap_in_bytes = event.key;
        summary.swap_wait_ns = static_cast<std::uint64_t>(event.stream);
        summary.peak_swapped = std::max(summary.peak_swapped, event.address);
        break;
    }
  }
  return summary;
}

}  // namespace

absl::StatusOr<LogSummary> ConvertLog(const std::string& log_path, const std::string& trace_path) {
  THIMBLE_ASSIGN_OR_RETURN(const std::vector<Event> events, ReadEventLog(log_path));
  LogSummary summary = Summarize(events);
  summary.complete = IsCompleteEventLog(log_path);
  if (trace_path.empty()) return summary;
  THIMBLE_ASSIGN_OR_RETURN(const Trace trace, TraceFromEvents(events));
  THIMBLE_RETURN_IF_ERROR(WriteTraceFile(trace, trace_path));
  return summary;
}

}  // namespace thimble
