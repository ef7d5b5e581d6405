// A recorded trace as a problem for offline planning: every block a buffer, every operation a
// moment.
#pragma once

#include "allocator/observe/trace_text.h"
#include "allocator/plan/csv.h"

namespace thimble::plan {

// Blocks are named by the number of their allocation, from 0. What is live at the end stays so.
NamedProblem ProblemFromTrace(const Trace& trace);

}  // namespace thimble::plan
