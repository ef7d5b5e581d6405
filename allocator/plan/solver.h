// Lays out buffers as low as it can in the given time.
//
//   passes    buffers in some order, each at the lowest or the snuggest place: a portfolio of
//             orders, then orders near the best
//   squeaky   buffers that ended up too high come earlier in the next pass
//   ejection  a target below the best height; what does not fit makes room for itself
//
// They take turns, each for a fixed amount of work. The order of turns never depends on the clock
// (budget.h). All decisions are made on integers.
#pragma once

#include "allocator/plan/budget.h"
#include "allocator/plan/conflict_problem.h"
#include "allocator/plan/problem.h"

namespace thimble::plan {

// `problem` has passed CheckConflictProblem(). Cannot fail: a search that is cancelled before its
// first packing lays the rest of the buffers end to end. Fixed buffers stay. Offsets are multiples
// of the alignment. Plan::lower_bound is the higher of the problem's and the clique bound
// (clique_bound.h).
Plan SolveConflicts(const ConflictProblem& problem, const SolveOptions& options);

}  // namespace thimble::plan
