// Lays out buffers as low as it can in the time it gets.
//
//   passes    buffers in some order, each at the lowest or the snuggest place: a portfolio of
//             orders, then orders near the best
//   squeaky   buffers that ended up too high come earlier in the next pass
//   ejection  a target below the best height; what does not fit makes room for itself
//
// They take turns, each for a fixed amount of work. Which turn comes next never depends on the
// clock (budget.h). Every decision is made on integers.
#pragma once

#include "allocator/plan/budget.h"
#include "allocator/plan/conflict_problem.h"
#include "allocator/plan/problem.h"

namespace thimble::plan {

// `problem` has passed CheckConflictProblem(). Cannot fail: a search that is cancelled before it
// has found anything lays the rest of the buffers end to end. What is fixed stays. Offsets are
// multiples of the alignment; Plan::lower_bound is the problem's, or what cliques need beside the
// fixed buffers (clique_bound.h) if that is higher.
Plan SolveConflicts(const ConflictProblem& problem, const SolveOptions& options);

}  // namespace thimble::plan
