// Lays out buffers with known lifetimes. Uses the searches of plan/solver.h, and for small problems
// one more:
//
//   exact     a packing within a capacity, or a proof that there is none
#pragma once

#include "allocator/plan/budget.h"
#include "allocator/plan/problem.h"

namespace thimble::plan {

// `problem` has passed CheckProblem(). Cannot fail: a search that is cancelled before its first
// packing lays the rest of the buffers end to end.
Plan SolveLifetimes(const Problem& problem, const SolveOptions& options);

}  // namespace thimble::plan
