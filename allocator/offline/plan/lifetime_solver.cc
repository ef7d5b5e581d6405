#include "allocator/offline/plan/lifetime_solver.h"

#include <cstdint>

#include "allocator/offline/plan/exact_rounds.h"
#include "allocator/offline/plan/section_packer.h"
#include "allocator/plan/improvement.h"

namespace thimble::plan {

Plan SolveLifetimes(const Problem& problem, const SolveOptions& options) {
  constexpr std::size_t kSmall = 600;       // up to so many buffers exact search pays off
  constexpr std::uint64_t kExactShare = 4;  // of the work, for one of the other searches
  if (problem.buffers.empty()) return {};
  Budget budget(options);
  const Sections sections(problem);
  SectionPacker packer(problem, sections);
  Improvement improvement(packer, options);
  if (problem.buffers.size() > kSmall) {
    while (improvement.Step(Improvement::kEjectionWork, budget)) {
    }
    return improvement.TakeBest();
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
  return improvement.TakeBest();
}

}  // namespace thimble::plan
