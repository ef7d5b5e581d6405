// Lays out buffers with known lifetimes, as plan/solver.h does those with known conflicts, and for
// small problems
//
//   exact     a packing within a capacity, or a proof that there is none
#pragma once

#include "allocator/plan/budget.h"
#include "allocator/plan/problem.h"

namespace thimble::plan {

// `problem` has passed CheckProblem(). Cannot fail: a search that is cancelled before it has found
// anything lays the rest of the buffers end to end.
Plan SolveLifetimes(const Problem& problem, const SolveOptions& options);

}  // namespace thimble::plan
