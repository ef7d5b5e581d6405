// Replays recorded traces on Thimble and its peers. See --help and README.md.
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "allocator/base/status_macros.h"
#include "allocator/offline/logs/log_trace.h"
#include "tests/bench/arguments.h"
#include "tests/bench/measure.h"
#include "tests/bench/overlap_oracle.h"
#include "tests/bench/progress.h"
#include "tests/bench/replay_report.h"
#include "tests/bench/subject.h"
#include "tests/bench/workload.h"

namespace thimble::bench {
namespace {

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kBadUsage = 2;
constexpr int kMaxRepeat = 10000;

constexpr char kHelp[] =
    R"(replay FILE... [--policy P]... [--repeat N] [--json]

Replays traces (A <id> <bytes> [stream] [key] | F <id> | S | # comment) on allocation policies.
  --policy P   thimble, thimble_plan, bfc, bfc_growth, gmlake, expandable or cnmem; may be repeated.
               Default: all
  --repeat N   replays in a row for the driver figures. Default: 3
  --json       one JSON object per trace and policy on standard output, nothing else there

Figures (null, or - in the table, if a policy ran out of memory):
  ops, max_live_bytes      of the trace; the largest sum of requested bytes
  fit_bytes, fit_ratio     smallest capacity, in steps of 2 MiB, at which three replays in a row
                           succeed on one instance; bfc and cnmem take it at once, the others grow
  peak_reserved_bytes      most memory taken when growing from empty without bound, three replays;
                           bfc cannot grow, so what it takes at fit_bytes
  driver_calls, driver_calls_last_half, modelled_driver_us
                           N replays from empty at fit_bytes + 2 %; the second half of all operations
                           alone; the calls at published prices (A100)
  ns_per_op, p999_ns       steady state with twice the memory needed, after two replays; the best of
                           several rounds, in which all policies take turns; the policy's own
                           code only, without the driver's time
  overlap_errors           blocks that shared an address or a physical byte, at fit_bytes

Exit status: 0 done, 1 failed, 2 bad usage or bad trace.
)";

struct Options {
  std::vector<std::string> files;
  std::vector<PolicyKind> policies;
  int repeat = 3;
  bool json = false;
  bool help = false;
};

absl::StatusOr<PolicyKind> PolicyFromFlag(absl::string_view name) {
  if (const auto kind = ParsePolicy(name)) return *kind;
  const std::string known = absl::StrJoin(
      AllPolicies(), ", ",
      [](std::string* out, PolicyKind kind) { absl::StrAppend(out, PolicyName(kind)); });
  return absl::InvalidArgumentError(
      absl::StrCat("'", name, "' is not a policy; use one of ", known));
}

absl::StatusOr<Options> ParseArguments(Arguments arguments) {
  Options options;
  while (arguments.Next()) {
    if (arguments.IsSwitch("--json")) {
      options.json = true;
    } else if (arguments.IsSwitch("--help") || arguments.IsSwitch("-h")) {
      options.help = true;
    } else if (arguments.IsValueOf("--policy")) {
      THIMBLE_ASSIGN_OR_RETURN(const PolicyKind kind, PolicyFromFlag(arguments.value()));
      options.policies.push_back(kind);
    } else if (arguments.IsValueOf("--repeat")) {
      THIMBLE_ASSIGN_OR_RETURN(const std::uint64_t repeat,
                               arguments.Number("--repeat", 1, kMaxRepeat));
      options.repeat = static_cast<int>(repeat);
    } else if (arguments.IsOption()) {
      return absl::InvalidArgumentError(
          absl::StrCat("unknown option '", arguments.word(), "'; see --help"));
    } else {
      options.files.emplace_back(arguments.word());
    }
  }
  if (options.files.empty() && !options.help) {
    return absl::InvalidArgumentError("no trace file given; see --help");
  }
  if (options.policies.empty()) options.policies = AllPolicies();
  return options;
}

// "a/b/gpt2.trace" -> "gpt2".
std::string TraceName(absl::string_view path) {
  const std::size_t slash = path.rfind('/');
  if (slash != absl::string_view::npos) path.remove_prefix(slash + 1);
  absl::ConsumeSuffix(&path, ".trace");
  return std::string(path);
}

absl::StatusOr<std::vector<Workload>> LoadWorkloads(const std::vector<std::string>& files) {
  std::vector<Workload> workloads;
  for (const std::string& file : files) {
    THIMBLE_ASSIGN_OR_RETURN(const Trace trace, ReadTraceOrLog(file));
    Workload workload = MakeWorkload(TraceName(file), trace);
    if (workload.max_live_bytes == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", file, "' allocates nothing; is it a trace?"));
    }
    if (workload.max_live_bytes > kLargestCapacity) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", file, "' has ", FormatBytes(workload.max_live_bytes),
          " live at once; the largest device replay knows is ", FormatBytes(kLargestCapacity)));
    }
    workloads.push_back(std::move(workload));
  }
  return workloads;
}

ReplayResult MeasureSpace(const Workload& workload, PolicyKind kind, int repeat) {
  constexpr Bytes kHeadroomPercent = 2;
  ReplayResult result;
  result.trace = workload.name;
  result.policy = std::string(PolicyName(kind));
  result.ops = workload.recorded_ops;
  result.max_live_bytes = workload.max_live_bytes;
  result.fit_bytes = FindFit(workload, kind);
  if (!result.fit_bytes) return result;
  const Bytes fit = *result.fit_bytes;
  const Bytes with_headroom = RoundUp(fit + fit * kHeadroomPercent / 100, kFitQuantum);
  result.peak_reserved_bytes = MeasurePeakReserved(workload, kind, fit);
  result.driver = MeasureDriverUse(workload, kind, with_headroom, repeat);
  result.overlap_errors = CountOverlaps(workload, kind, fit, Sizing::kNatural, kFitReplays);
  return result;
}

std::vector<ReplayResult> MeasureWorkload(const Workload& workload, const Options& options,
                                          Progress* progress) {
  constexpr Bytes kRoomyFactor = 2;
  std::vector<ReplayResult> results;
  std::vector<SpeedSubject> subjects;
  const int parts = static_cast<int>(options.policies.size()) + 1;
  for (const PolicyKind kind : options.policies) {
    progress->Say(absl::StrCat(workload.name, ": ", PolicyName(kind)),
                  static_cast<int>(results.size()), parts);
    results.push_back(MeasureSpace(workload, kind, options.repeat));
    const Bytes needed = results.back().fit_bytes.value_or(workload.max_live_bytes);
    subjects.push_back({kind, RoundUp(kRoomyFactor * needed, kFitQuantum)});
  }
  progress->Say(absl::StrCat(workload.name, ": speed"), parts - 1, parts);
  const std::vector<std::optional<Speed>> speeds = MeasureSpeed(workload, subjects);
  for (std::size_t i = 0; i < results.size(); ++i) results[i].speed = speeds[i];
  progress->Clear();
  return results;
}

int Run(const Options& options) {
  if (options.help) {
    std::fputs(kHelp, stdout);
    return kDone;
  }
  const absl::StatusOr<std::vector<Workload>> workloads = LoadWorkloads(options.files);
  if (!workloads.ok()) {
    absl::FPrintF(stderr, "replay: %s\n", workloads.status().message());
    return kBadUsage;
  }
  if (!options.json) std::fputs(TableHeader().c_str(), stdout);
  std::uint64_t overlap_errors = 0;
  Progress progress;
  for (const Workload& workload : *workloads) {
    for (const ReplayResult& result : MeasureWorkload(workload, options, &progress)) {
      std::fputs((options.json ? JsonLine(result) : TableLine(result)).c_str(), stdout);
      overlap_errors += result.overlap_errors;
    }
    std::fflush(stdout);
  }
  return overlap_errors == 0 ? kDone : kFailed;
}

}  // namespace
}  // namespace thimble::bench

int main(int argc, char** argv) {
  return thimble::bench::RunProgram("replay", argc, argv, thimble::bench::ParseArguments,
                                    thimble::bench::Run);
}
