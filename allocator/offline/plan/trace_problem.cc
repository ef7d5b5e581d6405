#include "allocator/offline/plan/trace_problem.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/quote.h"
#include "allocator/base/status_macros.h"
#include "allocator/offline/logs/log_trace.h"

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

absl::StatusOr<NamedProblem> ReadProblemOrTrace(const std::string& path) {
  if (absl::EndsWith(path, ".csv")) return ReadProblemFile(path);
  THIMBLE_ASSIGN_OR_RETURN(const Trace trace, ReadTraceOrLog(path));
  NamedProblem problem = ProblemFromTrace(trace);
  if (problem.ids.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(Quote(path), " allocates nothing"));
  }
  THIMBLE_RETURN_IF_ERROR(CheckProblem(problem.problem));
  return problem;
}

}  // namespace thimble::plan
