#include "tests/plan/trace_problem.h"

#include <string>
#include <vector>

namespace thimble::plan {

NamedProblem ProblemFromTrace(const Trace& trace) {
  NamedProblem named;
  std::vector<std::size_t> buffer_of(trace.ids);
  std::int64_t now = 0;
  for (const TraceOp& op : trace.ops) {
    if (op.kind == TraceOpKind::kStep || op.bytes == 0) continue;
    if (op.kind == TraceOpKind::kAllocate) {
      buffer_of[op.id] = named.ids.size();
      named.ids.push_back(std::to_string(named.ids.size()));
      named.problem.buffers.push_back({now, /*upper=*/0, static_cast<std::int64_t>(op.bytes)});
    } else {
      named.problem.buffers[buffer_of[op.id]].upper = now;
    }
    ++now;
  }
  for (Buffer& buffer : named.problem.buffers) {
    if (buffer.upper == 0) buffer.upper = now;
  }
  return named;
}

}  // namespace thimble::plan
