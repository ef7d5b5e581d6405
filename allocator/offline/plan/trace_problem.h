// Turns a recorded trace into a problem for offline planning: every block is a buffer, every
// operation a point in time.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "allocator/offline/logs/trace_text.h"
#include "allocator/offline/plan/csv.h"

namespace thimble::plan {

// Blocks are named by the number of their allocation, from 0. Blocks that are never freed live to
// the end.
NamedProblem ProblemFromTrace(const Trace& trace);

// Reads a .csv, a text trace or an event log. The result has passed CheckProblem().
absl::StatusOr<NamedProblem> ReadProblemOrTrace(const std::string& path);

}  // namespace thimble::plan
