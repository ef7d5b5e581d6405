#include "allocator/offline/logs/log_trace.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/status_macros.h"
#include "allocator/base/warn.h"
#include "allocator/base/whole_file.h"
#include "allocator/offline/logs/log_reader.h"
#include "allocator/offline/logs/rmm_csv.h"

namespace thimble {

namespace {

class TraceBuilder {
 public:
  absl::Status Add(const Event& event) {
    switch (event.kind) {
      case EventKind::kAllocate:
        return Allocate(event);
      case EventKind::kFree:
        Free(event);
        break;
      case EventKind::kStep:
        trace_.ops.emplace_back();
        break;
      case EventKind::kOp:
        EndOp(event.time_ns);
        BeginOp(event);
        break;
      case EventKind::kUse:
        if (const auto it = live_.find(event.address); it != live_.end() && op_.is_open) {
          op_.access.reads.push_back(it->second.id);
        }
        break;
      case EventKind::kSwap:
        trace_.copied.out_bytes = event.bytes;
        trace_.copied.in_bytes = event.key;
        break;
      case EventKind::kCopy:
        trace_.copied.out_ns = event.bytes;
        trace_.copied.in_ns = event.key;
        break;
      default:
        break;
    }
    return absl::OkStatus();
  }

  Trace Finish(std::uint64_t time_ns) {
    EndOp(time_ns);
    return std::move(trace_);
  }

 private:
  struct Op {
    TraceAccess access;
    std::uint64_t began_ns = 0;
    bool is_open = false;    // more blocks may belong to it
    bool is_placed = false;  // its line is in the trace, but its duration is unknown
  };

  absl::Status Allocate(const Event& event) {
    TraceOp op;
    op.kind = TraceOpKind::kAllocate;
    op.bytes = event.bytes;
    op.stream = event.stream;
    op.key = event.key;
    op.id = spare_ids_.empty() ? trace_.ids++ : spare_ids_.back();
    if (!spare_ids_.empty()) spare_ids_.pop_back();
    if (!live_.emplace(event.address, op).second) {
      return absl::InvalidArgumentError(
          absl::StrFormat("the log allocates %#x twice without a free between", event.address));
    }
    live_bytes_ += op.bytes;
    trace_.max_live_bytes = std::max(trace_.max_live_bytes, live_bytes_);
    trace_.ops.push_back(op);
    if (op_.is_open) op_.access.writes.push_back(op.id);
    return absl::OkStatus();
  }

  void Free(const Event& event) {
    const auto it = live_.find(event.address);
    if (it == live_.end()) return;
    PlaceOp();
    TraceOp op = it->second;
    live_.erase(it);
    op.kind = TraceOpKind::kFree;
    live_bytes_ -= op.bytes;
    spare_ids_.push_back(op.id);
    trace_.ops.push_back(op);
  }

  void BeginOp(const Event& event) {
    op_ = Op();
    op_.access.name = absl::StrFormat("%016x", event.key);
    op_.began_ns = event.time_ns;
    op_.is_open = true;
  }

  void PlaceOp() {
    if (!op_.is_open) return;
    op_.access.at = trace_.ops.size();
    trace_.accesses.push_back(op_.access);
    op_.is_open = false;
    op_.is_placed = true;
  }

  void EndOp(std::uint64_t time_ns) {
    PlaceOp();
    if (!op_.is_placed) return;
    trace_.accesses.back().ns = static_cast<std::int64_t>(time_ns - op_.began_ns);
    op_.is_placed = false;
  }

  Trace trace_;
  Op op_;                                             // the last one
  absl::flat_hash_map<std::uint64_t, TraceOp> live_;  // the allocation behind an address
  std::vector<std::uint32_t> spare_ids_;
  Bytes live_bytes_ = 0;
};

}  // namespace

absl::StatusOr<Trace> TraceFromEvents(const std::vector<Event>& events) {
  TraceBuilder builder;
  for (const Event& event : events) THIMBLE_RETURN_IF_ERROR(builder.Add(event));
  return builder.Finish(events.empty() ? 0 : events.back().time_ns);
}

std::vector<Event> EventsFromTrace(const Trace& trace) {
  constexpr std::uint64_t kSpacing = 256;
  std::vector<Event> events;
  events.reserve(trace.ops.size());
  for (const TraceOp& op : trace.ops) {
    Event event;
    if (op.kind != TraceOpKind::kStep) {
      event.kind = op.kind == TraceOpKind::kAllocate ? EventKind::kAllocate : EventKind::kFree;
      event.address = (std::uint64_t{op.id} + 1) * kSpacing;
      event.bytes = op.kind == TraceOpKind::kAllocate ? op.bytes : 0;
      event.stream = op.stream;
      event.key = op.key;
    }
    events.push_back(event);
  }
  return events;
}

absl::StatusOr<Trace> ReadTraceOrLog(const std::string& path) {
  if (!IsEventLog(path)) {
    THIMBLE_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path));
    if (!IsRmmCsv(text)) return ParseTrace(text, path);
    THIMBLE_ASSIGN_OR_RETURN(const std::vector<Event> events, ParseRmmCsv(text, path));
    return TraceFromEvents(events);
  }
  THIMBLE_ASSIGN_OR_RETURN(const LogContents log, ReadLog(path));
  THIMBLE_RETURN_IF_ERROR(CheckUndamaged(log, path));
  if (!log.complete) Warn(absl::StrCat("'", path, "': ", log.note));
  return TraceFromEvents(log.events);
}

}  // namespace thimble
