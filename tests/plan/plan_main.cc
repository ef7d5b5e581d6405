// Plans offline: reads buffers with their lifetimes, writes where each of them goes. See --help.
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/quote.h"
#include "allocator/base/status_macros.h"
#include "allocator/observe/log_trace.h"
#include "allocator/plan/csv.h"
#include "allocator/plan/solver.h"
#include "allocator/plan/validator.h"
#include "tests/bench/arguments.h"
#include "tests/bench/json.h"
#include "tests/bench/progress.h"
#include "tests/plan/trace_problem.h"

namespace thimble::plan {
namespace {

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kBadUsage = 2;

constexpr char kHelp[] =
    R"(plan FILE... [--seconds S] [--seed N] [--out PLAN.csv] [--json]

Finds a place for every buffer of a file, so that no two that are live together overlap and the
whole is as low as possible. A file is a .csv (id,lower,upper,size: live from lower until upper,
which is excluded) or a recorded trace, text or event log.
  --seconds S  how long to look for something better, per file. Default: 5
  --seed N     of the random choices; same seed, same search. Default: 1
  --out PATH   writes the plan (id,offset); for one file only
  --json       one JSON object per file on standard output, nothing else there

Figures:
  buffers      in the file
  height       of the plan: the end of the highest buffer
  lower_bound  most that is live at once; no plan is lower
  ratio        height / lower_bound
  smartpool    the same for the heuristic of SmartPool: first fit, the largest first
  seconds      taken

Every plan is checked by code of its own before it is shown.
Exit status: 0 done, 1 failed, 2 bad usage or bad file.
)";

struct Options {
  std::vector<std::string> files;
  SolveOptions solve;
  std::string out;
  bool json = false;
  bool help = false;
};

absl::StatusOr<double> ParseSeconds(absl::string_view text) {
  double seconds = 0;
  if (absl::SimpleAtod(text, &seconds) && seconds >= 0 && seconds <= kMostSeconds) return seconds;
  return absl::InvalidArgumentError(
      absl::StrCat("--seconds '", text, "' is not a number from 0 to ", kMostSeconds));
}

absl::StatusOr<Options> ParseArguments(bench::Arguments arguments) {
  Options options;
  while (arguments.Next()) {
    if (arguments.IsSwitch("--json")) {
      options.json = true;
    } else if (arguments.IsSwitch("--help") || arguments.IsSwitch("-h")) {
      options.help = true;
    } else if (arguments.IsValueOf("--seconds")) {
      THIMBLE_ASSIGN_OR_RETURN(options.solve.seconds, ParseSeconds(arguments.value()));
    } else if (arguments.IsValueOf("--seed")) {
      THIMBLE_ASSIGN_OR_RETURN(options.solve.seed,
                               arguments.Number("--seed", 0, ~std::uint64_t{0}));
    } else if (arguments.IsValueOf("--out")) {
      options.out = std::string(arguments.value());
      if (options.out.empty()) return absl::InvalidArgumentError("--out needs the path of a file");
    } else if (arguments.IsOption()) {
      return absl::InvalidArgumentError(
          absl::StrCat("unknown option '", arguments.word(), "'; see --help"));
    } else {
      options.files.emplace_back(arguments.word());
    }
  }
  if (options.help) return options;
  if (options.files.empty()) return absl::InvalidArgumentError("no file given; see --help");
  if (!options.out.empty() && options.files.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--out '", options.out, "' is for one file, but ", options.files.size(), " are given"));
  }
  return options;
}

absl::StatusOr<NamedProblem> ReadEither(const std::string& file) {
  if (absl::EndsWith(file, ".csv")) return ReadProblemFile(file);
  THIMBLE_ASSIGN_OR_RETURN(const Trace trace, ReadTraceOrLog(file));
  NamedProblem problem = ProblemFromTrace(trace);
  if (problem.ids.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(Quote(file), " allocates nothing"));
  }
  THIMBLE_RETURN_IF_ERROR(CheckProblem(problem.problem));
  return problem;
}

absl::StatusOr<std::vector<NamedProblem>> ReadProblems(const std::vector<std::string>& files) {
  std::vector<NamedProblem> problems;
  for (const std::string& file : files) {
    THIMBLE_ASSIGN_OR_RETURN(NamedProblem problem, ReadEither(file));
    problems.push_back(std::move(problem));
  }
  return problems;
}

// A search without time ends with its first plan, which is that of SmartPool.
Plan PlanAsSmartPool(const Problem& problem) {
  SolveOptions options;
  options.seconds = 0;
  return Solve(problem, options);
}

double RatioOf(const Plan& plan) {
  return static_cast<double>(plan.height) / static_cast<double>(plan.lower_bound);
}

void PrintResult(const std::string& file, const Plan& plan, const Plan& smartpool, double seconds,
                 bool json) {
  if (json) {
    absl::PrintF(
        "{\"file\": %s, \"buffers\": %d, \"height\": %d, \"lower_bound\": %d, \"ratio\": %.9g, "
        "\"smartpool\": %.9g, \"seconds\": %.3f}\n",
        bench::JsonString(file), plan.offsets.size(), plan.height, plan.lower_bound, RatioOf(plan),
        RatioOf(smartpool), seconds);
  } else {
    absl::PrintF("%-32s %8d %20d %20d %9.6f %9.6f %8.2f\n", file, plan.offsets.size(), plan.height,
                 plan.lower_bound, RatioOf(plan), RatioOf(smartpool), seconds);
  }
  std::fflush(stdout);
}

absl::Status PlanFile(const std::string& file, const NamedProblem& named, const Options& options) {
  bench::Progress progress;
  progress.Say(absl::StrFormat("%s: at most %g s", file, options.solve.seconds));
  const auto start = std::chrono::steady_clock::now();
  const Plan plan = Solve(named.problem, options.solve);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  progress.Clear();
  THIMBLE_RETURN_IF_ERROR(ValidatePlan(named.problem, plan));
  if (!options.out.empty()) {
    THIMBLE_RETURN_IF_ERROR(WritePlanFile(named.ids, plan, options.out));
  }
  PrintResult(file, plan, PlanAsSmartPool(named.problem), taken.count(), options.json);
  return absl::OkStatus();
}

int Run(const Options& options) {
  if (options.help) {
    std::fputs(kHelp, stdout);
    return kDone;
  }
  const absl::StatusOr<std::vector<NamedProblem>> problems = ReadProblems(options.files);
  if (!problems.ok()) {
    absl::FPrintF(stderr, "plan: %s\n", problems.status().message());
    return kBadUsage;
  }
  if (!options.json) {
    absl::PrintF("%-32s %8s %20s %20s %9s %9s %8s\n", "file", "buffers", "height", "lower bound",
                 "ratio", "smartpool", "seconds");
  }
  for (std::size_t i = 0; i < problems->size(); ++i) {
    const absl::Status status = PlanFile(options.files[i], (*problems)[i], options);
    if (!status.ok()) {
      absl::FPrintF(stderr, "plan: '%s': %s\n", options.files[i], status.message());
      return kFailed;
    }
  }
  return kDone;
}

}  // namespace
}  // namespace thimble::plan

int main(int argc, char** argv) {
  return thimble::bench::RunProgram("plan", argc, argv, thimble::plan::ParseArguments,
                                    thimble::plan::Run);
}
