#include "tests/bench/workload.h"

#include <optional>
#include <utility>

namespace thimble::bench {

Workload MakeWorkload(std::string name, const Trace& trace) {
  Workload workload;
  workload.name = std::move(name);
  workload.ids = trace.ids;
  workload.max_live_bytes = trace.max_live_bytes;
  std::vector<std::optional<TraceOp>> live(trace.ids);
  workload.ops.emplace_back();  // a step
  for (const TraceOp& op : trace.ops) {
    if (op.kind == TraceOpKind::kStep) {
      workload.ops.push_back(op);
      continue;
    }
    ++workload.recorded_ops;
    if (op.bytes == 0) continue;
    workload.ops.push_back(op);
    live[op.id] = op.kind == TraceOpKind::kAllocate ? std::make_optional(op) : std::nullopt;
  }
  for (const std::optional<TraceOp>& left : live) {
    if (!left) continue;
    workload.ops.push_back(*left);
    workload.ops.back().kind = TraceOpKind::kFree;
  }
  return workload;
}

bool Replay(const Workload& workload, Policy* policy) {
  Addresses addresses(workload.ids);
  for (const TraceOp& op : workload.ops) {
    if (!ReplayOp(op, policy, &addresses)) return false;
  }
  return true;
}

}  // namespace thimble::bench
