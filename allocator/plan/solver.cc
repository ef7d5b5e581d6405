#include "allocator/plan/solver.h"

#include <cstdint>
#include <utility>

#include "allocator/plan/conflict_packer.h"
#include "allocator/plan/exact_rounds.h"
#include "allocator/plan/improvement.h"
#include "allocator/plan/section_packer.h"

namespace thimble::plan {

namespace {

constexpr std::uint64_t kEjectionWork = 20'000'000;  // per turn: some tenths of a second

Plan MakePlan(const Packer& packer, Packing& best) {
  return {std::move(best.offsets), best.height, packer.lower_bound()};
}

}  // namespace

Plan Solve(const Problem& problem, const SolveOptions& options) {
  constexpr std::size_t kSmall = 600;       // buffers, for which exact search is worth its time
  constexpr std::uint64_t kExactShare = 4;  // of the work, for one of the other searches
  if (problem.buffers.empty()) return {};
  Budget budget(options);
  const Sections sections(problem);
  SectionPacker packer(problem, sections);
  Improvement improvement(packer, options);
  if (problem.buffers.size() > kSmall) {
    while (improvement.Step(kEjectionWork, budget)) {
    }
    return MakePlan(packer, improvement.best());
  }
  if (improvement.Step(0, budget)) {
    ExactRounds exact(problem, sections, packer.unit(), options.seed);
    std::uint64_t work = 0;
    do {
      const std::uint64_t start = budget.spent();
      exact.Round(budget, improvement.best());
      work = budget.spent() - start;
    } while (!exact.is_optimal(improvement.best()) && improvement.Step(work / kExactShare, budget));
  }
  return MakePlan(packer, improvement.best());
}

Plan SolveConflicts(const ConflictProblem& problem, const SolveOptions& options) {
  if (problem.sizes.empty()) return {};
  Budget budget(options);
  ConflictPacker packer(problem);
  Improvement improvement(packer, options);
  while (improvement.Step(kEjectionWork, budget)) {
  }
  return MakePlan(packer, improvement.best());
}

}  // namespace thimble::plan
