#include "allocator/observe/log_trace.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_format.h"
#include "allocator/base/status_macros.h"
#include "allocator/observe/event_log.h"

namespace thimble {

absl::StatusOr<Trace> TraceFromEvents(const std::vector<Event>& events) {
  Trace trace;
  absl::flat_hash_map<Address, TraceOp> live;  // the allocation behind an address
  std::vector<std::uint32_t> spare_ids;
  Bytes live_bytes = 0;
  for (const Event& event : events) {
    if (event.kind == EventKind::kStep) {
      trace.ops.emplace_back();
    } else if (event.kind == EventKind::kAllocate) {
      TraceOp op;
      op.kind = TraceOpKind::kAllocate;
      op.bytes = event.bytes;
      op.stream = event.stream;
      op.key = event.key;
      op.id = spare_ids.empty() ? trace.ids++ : spare_ids.back();
      if (!spare_ids.empty()) spare_ids.pop_back();
      if (!live.emplace(event.address, op).second) {
        return absl::InvalidArgumentError(
            absl::StrFormat("the log allocates %#x twice without a free between", event.address));
      }
      live_bytes += op.bytes;
      trace.max_live_bytes = std::max(trace.max_live_bytes, live_bytes);
      trace.ops.push_back(op);
    } else if (const auto it = live.find(event.address);
               event.kind == EventKind::kFree && it != live.end()) {
      TraceOp op = it->second;
      live.erase(it);
      op.kind = TraceOpKind::kFree;
      live_bytes -= op.bytes;
      spare_ids.push_back(op.id);
      trace.ops.push_back(op);
    }
  }
  return trace;
}

std::vector<Event> EventsFromTrace(const Trace& trace) {
  constexpr Address kSpacing = 256;
  std::vector<Event> events;
  events.reserve(trace.ops.size());
  for (const TraceOp& op : trace.ops) {
    Event event;
    if (op.kind != TraceOpKind::kStep) {
      event.kind = op.kind == TraceOpKind::kAllocate ? EventKind::kAllocate : EventKind::kFree;
      event.address = (Address{op.id} + 1) * kSpacing;
      event.bytes = op.kind == TraceOpKind::kAllocate ? op.bytes : 0;
      event.stream = op.stream;
      event.key = op.key;
    }
    events.push_back(event);
  }
  return events;
}

absl::StatusOr<Trace> ReadTraceOrLog(const std::string& path) {
  if (!IsEventLog(path)) return ReadTraceFile(path);
  THIMBLE_ASSIGN_OR_RETURN(const std::vector<Event> events, ReadEventLog(path));
  return TraceFromEvents(events);
}

}  // namespace thimble
