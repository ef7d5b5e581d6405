// ParseProblemCsv: any text is either refused with its place, or it is a sound problem, whose plan
// is valid.
#include "absl/strings/match.h"
#include "allocator/offline/plan/csv.h"
#include "allocator/offline/plan/lifetime_solver.h"
#include "allocator/plan/validator.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace thimble::plan;
  const auto named = ParseProblemCsv(thimble::Input(data, size).Rest(), "fuzz.csv");
  if (!named.ok()) {
    FUZZ_EXPECT(named.status().code() == absl::StatusCode::kInvalidArgument);
    FUZZ_EXPECT(absl::StartsWith(named.status().message(), "fuzz.csv:"));
    return 0;
  }
  FUZZ_EXPECT(CheckProblem(named->problem).ok());
  FUZZ_EXPECT(named->ids.size() == named->problem.buffers.size());
  SolveOptions options;
  options.max_work = 100000;
  const Plan plan = SolveLifetimes(named->problem, options);
  FUZZ_EXPECT(ValidatePlan(named->problem, plan).ok());
  FUZZ_EXPECT(plan.lower_bound == MaxLive(named->problem));
  return 0;
}
