// A recorded trace as a problem for offline planning: every block a buffer, every operation a
// moment.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "allocator/offline/logs/trace_text.h"
#include "allocator/offline/plan/csv.h"

namespace thimble::plan {

// Blocks are named by the number of their allocation, from 0. What is live at the end stays so.
NamedProblem ProblemFromTrace(const Trace& trace);

// From a .csv, a text trace or an event log. The result has passed CheckProblem().
absl::StatusOr<NamedProblem> ReadProblemOrTrace(const std::string& path);

}  // namespace thimble::plan
