#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/json.h"
#include "allocator/base/quote.h"
#include "allocator/base/status_macros.h"
#include "allocator/offline/plan/csv.h"
#include "allocator/offline/plan/lifetime_solver.h"
#include "allocator/offline/plan/trace_problem.h"
#include "allocator/offline/tools/tools.h"
#include "allocator/plan/validator.h"

namespace thimble {
namespace {

absl::StatusOr<plan::SolveOptions> TakeOptions(Arguments& arguments) {
  plan::SolveOptions options;
  const std::string seconds = arguments.Take("seconds");
  if (!seconds.empty() && (!absl::SimpleAtod(seconds, &options.seconds) ||
                           !(options.seconds >= 0 && options.seconds <= plan::kMostSeconds))) {
    return absl::InvalidArgumentError(absl::StrCat(
        "seconds ", Quote(seconds), " is not a number from 0 to ", plan::kMostSeconds));
  }
  const std::string seed = arguments.Take("seed");
  if (!seed.empty() && !absl::SimpleAtoi(seed, &options.seed)) {
    return absl::InvalidArgumentError(
        absl::StrCat("seed ", Quote(seed), " is not a whole number from 0"));
  }
  return options;
}

// A search of zero seconds returns its first plan, which is SmartPool's.
std::int64_t SmartPoolHeight(const plan::Problem& problem) {
  plan::SolveOptions options;
  options.seconds = 0;
  return plan::SolveLifetimes(problem, options).height;
}

}  // namespace

absl::StatusOr<std::string> RunPlan(Arguments arguments) {
  THIMBLE_ASSIGN_OR_RETURN(const std::string path, arguments.Need("problem"));
  THIMBLE_ASSIGN_OR_RETURN(const plan::SolveOptions options, TakeOptions(arguments));
  THIMBLE_ASSIGN_OR_RETURN(const bool baselines, arguments.TakeSwitch("baselines"));
  const std::string out = arguments.Take("plan");
  THIMBLE_RETURN_IF_ERROR(arguments.CheckAllTaken());
  THIMBLE_ASSIGN_OR_RETURN(const plan::NamedProblem named, plan::ReadProblemOrTrace(path));
  const plan::Plan found = plan::SolveLifetimes(named.problem, options);
  THIMBLE_RETURN_IF_ERROR(plan::ValidatePlan(named.problem, found));
  if (!out.empty()) THIMBLE_RETURN_IF_ERROR(plan::WritePlanFile(named.ids, found, out));
  JsonObject answer;
  answer.Add("buffers", found.offsets.size())
      .Add("height", found.height)
      .Add("lower_bound", found.lower_bound);
  if (baselines) answer.Add("smartpool", SmartPoolHeight(named.problem));
  return answer.Text();
}

}  // namespace thimble
