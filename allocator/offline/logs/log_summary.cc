#include "allocator/offline/logs/log_summary.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "allocator/base/event.h"
#include "allocator/base/json.h"
#include "allocator/base/status_macros.h"
#include "allocator/offline/logs/log_trace.h"
#include "allocator/offline/logs/trace_text.h"

namespace thimble {

LogSummary Summarize(const LogContents& log) {
  const std::vector<Event>& events = log.events;
  LogSummary summary;
  summary.events = log.records;
  summary.complete = log.complete;
  summary.note = log.note;
  summary.out_of_memory = log.texts.size();
  summary.duration_ns = events.empty() ? 0 : events.back().time_ns;
  summary.damaged_at = log.damage.empty() ? 0 : log.records + 1;
  absl::flat_hash_map<std::uint64_t, Bytes> live;  // by address
  Bytes in_use = 0;
  Bytes reserved = 0;
  Bytes on_host = 0;
  for (const Event& event : events) {
    switch (event.kind) {
      case EventKind::kAllocate:
        ++summary.allocations;
        // The address is live already: the log lacks a free.
        in_use -= std::exchange(live[event.address], event.bytes);
        in_use += event.bytes;
        if (in_use > summary.peak_in_use) {
          summary.peak_in_use = in_use;
          summary.reserved_at_peak = reserved;
          summary.swapped_at_peak = on_host;
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
        on_host = event.address;
        summary.peak_swapped = std::max(summary.peak_swapped, on_host);
        break;
      case EventKind::kLimit:
        summary.limit = event.bytes;
        break;
      default:
        break;
    }
  }
  return summary;
}

std::string ToJson(const LogSummary& summary) {
  return JsonObject()
      .Add("events", summary.events)
      .Add("allocations", summary.allocations)
      .Add("peak_in_use", summary.peak_in_use)
      .Add("reserved_at_start", summary.reserved_at_start)
      .Add("peak_reserved", summary.peak_reserved)
      .Add("reserved_at_peak", summary.reserved_at_peak)
      .Add("stitches", summary.stitches)
      .Add("complete", summary.complete)
      .Add("steps", summary.steps)
      .Add("plan_requests", summary.plan_requests)
      .Add("plan_hits", summary.plan_hits)
      .Add("plan_repeats", summary.plan_repeats)
      .Add("swap_out_bytes", summary.swap_out_bytes)
      .Add("swap_in_bytes", summary.swap_in_bytes)
      .Add("swap_wait_ns", summary.swap_wait_ns)
      .Add("peak_swapped", summary.peak_swapped)
      .Add("limit", summary.limit)
      .Add("out_of_memory", summary.out_of_memory)
      .Add("duration_ns", summary.duration_ns)
      .Add("damaged_at", summary.damaged_at)
      .Add("swapped_at_peak", summary.swapped_at_peak)
      .Add("note", summary.note)
      .Text();
}

absl::StatusOr<LogSummary> ConvertLog(const std::string& log_path, const std::string& trace_path) {
  THIMBLE_ASSIGN_OR_RETURN(const LogContents log, ReadLog(log_path));
  const LogSummary summary = Summarize(log);
  if (trace_path.empty()) return summary;
  THIMBLE_ASSIGN_OR_RETURN(const Trace trace, TraceFromEvents(log.events));
  THIMBLE_RETURN_IF_ERROR(WriteTraceFile(trace, trace_path));
  return summary;
}

}  // namespace thimble
