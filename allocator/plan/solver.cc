#include "allocator/plan/solver.h"

#include "allocator/plan/conflict_packer.h"
#include "allocator/plan/improvement.h"

namespace thimble::plan {

Plan SolveConflicts(const ConflictProblem& problem, const SolveOptions& options) {
  if (problem.sizes.empty()) return {};
  Budget budget(options);
  ConflictPacker packer(problem);
  Improvement improvement(packer, options);
  while (improvement.Step(Improvement::kEjectionWork, budget)) {
  }
  return improvement.TakeBest();
}

}  // namespace thimble::plan
