// Checks plans independently: shares no code with the solver, not even the lower bound. Every plan
// is checked here before it is used.
#pragma once

#include "absl/status/status.h"
#include "allocator/plan/conflict_problem.h"
#include "allocator/plan/problem.h"

namespace thimble::plan {

// OK if and only if every buffer has an offset that is not negative, no two buffers that are live
// together share a byte, and `plan.height` is the top of the highest one. Otherwise kInternal,
// which names the buffers by index. O(n log n).
[[nodiscard]] absl::Status ValidatePlan(const Problem& problem, const Plan& plan);

// The same for pairs that conflict; offsets must also be aligned, and fixed ones unchanged. O(n^2).
[[nodiscard]] absl::Status ValidatePlan(const ConflictProblem& problem, const Plan& plan);

}  // namespace thimble::plan
