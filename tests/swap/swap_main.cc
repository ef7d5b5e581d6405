// Plans swapping: reads what the ops of a step access, says what leaves when. See --help.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "allocator/base/status_macros.h"
#include "allocator/observe/swap_problem.h"
#include "allocator/observe/swap_summary.h"
#include "allocator/swap/autoswap.h"
#include "allocator/swap/planner.h"
#include "allocator/swap/schedule_csv.h"
#include "allocator/swap/settings.h"
#include "tests/bench/arguments.h"
#include "tests/bench/json.h"
#include "tests/bench/progress.h"

namespace thimble::swap {
namespace {

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kBadUsage = 2;

constexpr char kHelp[] =
    R"(swap FILE... [--limit BYTES | --slowdown PERCENT] [--bus BUS] [--run-ahead MS]
     [--out SCHEDULE.csv] [--curve] [--json]

Plans which blocks of a training step wait on the host, and when, so that the step needs less
memory. A file is a recorded trace with accesses (O lines); its last whole step is planned.
  --limit BYTES       the largest peak that is low enough (8GiB, 512MiB, bytes): with as little
                      slowdown as can be found
  --slowdown PERCENT  the lowest peak for which a step takes at most so much longer. Default: 0
  --bus BUS           13: 13.2 GB/s and 47 us out, 12.2 GB/s and 9.7 us in (PCIe 3; the default);
                      24: 24 GB/s and 10 us either way (PCIe 4); or OUT/IN in GB/s, as 55/55.
                      Without it, the bus that an event log has measured, if there is one
  --run-ahead MS      how far the host is ahead of the device: memory that left is free so much
                      later. Default: 0
  --out PATH          writes the schedule; for one file only
  --curve             instead of one schedule, a table: limit, and the slowdown it costs
  --json              one JSON object per file (with --curve: per limit) on standard output,
                      nothing else there

Figures:
  peak_before  most bytes that are live in the step
  peak_after   most bytes on the device with the schedule
  ratio        peak_after / peak_before
  slowdown     how much longer a step takes, in percent, if durations and bus are as modelled
  bytes_out    copied to the host in a step; bytes_in: copied back
  policy       which of the searches found the schedule
  bus_out      bytes per second to the host that it was planned for; bus_in: back
  autoswap     the peak for each of AutoSwap's four scores, without slowdown
  seconds      taken to plan

Every schedule is checked by code of its own before it is shown.
Exit status: 0 done, 1 failed, 2 bad usage or bad file.
)";

struct Options {
  std::vector<std::string> files;
  Settings settings;
  bool has_slowdown = false;
  std::string out;
  bool curve = false;
  bool json = false;
  bool help = false;
};

absl::Status Check(const Options& options) {
  if (options.help) return absl::OkStatus();
  if (options.files.empty()) return absl::InvalidArgumentError("no file given; see --help");
  if (options.settings.goal.limit > 0 && options.has_slowdown) {
    return absl::InvalidArgumentError("--limit and --slowdown exclude each other: give one");
  }
  if (options.curve &&
      (options.settings.goal.limit > 0 || options.has_slowdown || !options.out.empty())) {
    return absl::InvalidArgumentError("--curve goes without --limit, --slowdown and --out");
  }
  if (!options.out.empty() && options.files.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--out '", options.out, "' is for one file, but ", options.files.size(), " are given"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Options> ParseArguments(bench::Arguments arguments) {
  Options options;
  while (arguments.Next()) {
    if (arguments.IsSwitch("--json")) {
      options.json = true;
    } else if (arguments.IsSwitch("--curve")) {
      options.curve = true;
    } else if (arguments.IsSwitch("--help") || arguments.IsSwitch("-h")) {
      options.help = true;
    } else if (arguments.IsValueOf("--limit")) {
      THIMBLE_ASSIGN_OR_RETURN(options.settings.goal.limit, ParseLimit(arguments.value()));
    } else if (arguments.IsValueOf("--slowdown")) {
      THIMBLE_ASSIGN_OR_RETURN(options.settings.goal.slowdown, ParseSlowdown(arguments.value()));
      options.has_slowdown = true;
    } else if (arguments.IsValueOf("--bus")) {
      const Ns run_ahead = options.settings.machine.run_ahead_ns;
      THIMBLE_ASSIGN_OR_RETURN(options.settings.machine, ParseBus(arguments.value()));
      options.settings.machine.run_ahead_ns = run_ahead;
      options.settings.has_bus = true;
    } else if (arguments.IsValueOf("--run-ahead")) {
      THIMBLE_ASSIGN_OR_RETURN(options.settings.machine.run_ahead_ns,
                               ParseRunAhead(arguments.value()));
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
  THIMBLE_RETURN_IF_ERROR(Check(options));
  return options;
}

struct Result {
  SwapSummary summary;
  double seconds = 0;
};

absl::StatusOr<Result> PlanAndTime(const Problem& problem, const Settings& settings) {
  const auto start = std::chrono::steady_clock::now();
  THIMBLE_ASSIGN_OR_RETURN(SwapSummary summary, SummarizeSwaps(problem, settings));
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  return Result{std::move(summary), taken.count()};
}

double PercentOf(const SwapSummary& summary) {
  return static_cast<double>(summary.slowdown) * 100 / kMillion;
}

double RatioOf(const SwapSummary& summary) {
  return static_cast<double>(summary.schedule.peak_bytes) /
         static_cast<double>(summary.peak_before);
}

// `form` takes a name and a number.
template <typename Form>
std::string ScoresText(const SwapSummary& summary, const Form& form) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < kScores.size(); ++i) {
    words.push_back(absl::StrFormat(form, NameOf(kScores[i]), summary.autoswap[i]));
  }
  return absl::StrJoin(words, ", ");
}

void PrintJson(const std::string& file, const Result& result) {
  const Schedule& schedule = result.summary.schedule;
  absl::PrintF(
      "\"file\": %s, \"peak_before\": %d, \"peak_after\": %d, \"ratio\": %.6f, \"slowdown\": %.4f, "
      "\"bytes_out\": %d, \"bytes_in\": %d, \"swaps\": %d, \"bus_out\": %d, \"bus_in\": %d, "
      "\"policy\": %s, ",
      bench::JsonString(file), result.summary.peak_before, schedule.peak_bytes,
      RatioOf(result.summary), PercentOf(result.summary), schedule.bytes_out, schedule.bytes_in,
      schedule.swaps.size(), result.summary.machine.out_bytes_per_second,
      result.summary.machine.in_bytes_per_second, bench::JsonString(schedule.policy));
  const absl::ParsedFormat<'s', 'd'> form("\"%s\": %d");
  absl::PrintF("\"autoswap\": {%s}, \"seconds\": %.3f}\n", ScoresText(result.summary, form),
               result.seconds);
}

// Before the first line of figures, so that nothing but the message is there when there are none.
void PrintHeaderOnce(const Options& options) {
  static bool done = false;
  if (options.json || std::exchange(done, true)) return;
  if (options.curve) {
    absl::PrintF("%-32s %14s %7s %9s %14s %14s %8s\n", "file", "limit", "ratio", "slowdown%",
                 "bytes out", "bytes in", "seconds");
  } else {
    absl::PrintF("%-32s %14s %14s %7s %9s %14s %14s %8s  %s\n", "file", "peak before", "peak after",
                 "ratio", "slowdown%", "bytes out", "bytes in", "seconds", "policy (AutoSwap)");
  }
}

absl::Status PlanFile(const std::string& file, const Problem& problem, const Options& options) {
  bench::Progress progress;
  progress.Say(file);
  THIMBLE_ASSIGN_OR_RETURN(const Result result, PlanAndTime(problem, options.settings));
  progress.Clear();
  const SwapSummary& summary = result.summary;
  const Schedule& schedule = summary.schedule;
  if (!options.out.empty()) {
    THIMBLE_RETURN_IF_ERROR(WriteScheduleFile(summary.problem, schedule, options.out));
  }
  PrintHeaderOnce(options);
  if (options.json) {
    absl::PrintF("{");
    PrintJson(file, result);
  } else {
    const absl::ParsedFormat<'s', 'd'> form("%s %d");
    absl::PrintF("%-32s %14d %14d %7.4f %9.3f %14d %14d %8.2f  %s (%s)\n", file,
                 summary.peak_before, schedule.peak_bytes, RatioOf(summary), PercentOf(summary),
                 schedule.bytes_out, schedule.bytes_in, result.seconds, schedule.policy,
                 ScoresText(summary, form));
  }
  std::fflush(stdout);
  return absl::OkStatus();
}

// From the peak down in steps of a twentieth, as far as there is a schedule.
absl::Status CurveOf(const std::string& file, const Problem& problem, const Options& options) {
  const std::int64_t peak = PeakBytes(problem);
  bench::Progress progress;
  for (std::int64_t twentieths = 19; twentieths > 0; --twentieths) {
    progress.Say(file, static_cast<int>(19 - twentieths), 19);
    Settings settings = options.settings;
    settings.goal.limit = std::max<std::int64_t>(1, peak * twentieths / 20);
    const absl::StatusOr<Result> result = PlanAndTime(problem, settings);
    if (absl::IsResourceExhausted(result.status())) return absl::OkStatus();
    THIMBLE_RETURN_IF_ERROR(result.status());
    progress.Clear();
    PrintHeaderOnce(options);
    if (options.json) {
      absl::PrintF("{\"limit\": %d, ", settings.goal.limit);
      PrintJson(file, *result);
    } else {
      const Schedule& schedule = result->summary.schedule;
      absl::PrintF("%-32s %14d %7.2f %9.3f %14d %14d %8.2f\n", file, settings.goal.limit,
                   static_cast<double>(twentieths) / 20, PercentOf(result->summary),
                   schedule.bytes_out, schedule.bytes_in, result->seconds);
    }
    std::fflush(stdout);
  }
  return absl::OkStatus();
}

int Run(const Options& options) {
  if (options.help) {
    std::fputs(kHelp, stdout);
    return kDone;
  }
  std::vector<Problem> problems;
  for (const std::string& file : options.files) {
    absl::StatusOr<Problem> problem = ReadSwapProblem(file);
    if (!problem.ok()) {
      absl::FPrintF(stderr, "swap: %s\n", problem.status().message());
      return kBadUsage;
    }
    problems.push_back(*std::move(problem));
  }
  for (std::size_t i = 0; i < problems.size(); ++i) {
    const auto do_file = options.curve ? CurveOf : PlanFile;
    const absl::Status status = do_file(options.files[i], problems[i], options);
    if (!status.ok()) {
      absl::FPrintF(stderr, "swap: '%s': %s\n", options.files[i], status.message());
      return kFailed;
    }
  }
  return kDone;
}

}  // namespace
}  // namespace thimble::swap

int main(int argc, char** argv) {
  return thimble::bench::RunProgram("swap", argc, argv, thimble::swap::ParseArguments,
                                    thimble::swap::Run);
}
