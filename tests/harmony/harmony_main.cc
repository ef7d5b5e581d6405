// Plans and simulates training on several GPUs whose memory is too small. See --help.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/bytes.h"
#include "allocator/base/status_macros.h"
#include "allocator/base/whole_file.h"
#include "allocator/harmony/json.h"
#include "allocator/harmony/report.h"
#include "allocator/harmony/settings.h"
#include "tests/bench/arguments.h"
#include "tests/bench/json.h"
#include "tests/bench/progress.h"

namespace thimble::harmony {
namespace {

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kBadUsage = 2;

constexpr char kHelp[] =
    R"(harmony PROFILE.csv --gpus N --memory BYTES --batch D [--mode dp|pp|auto]
        [--rules thimble|harmony] [--topology FILE] [--prefetch] [--packers published|all]
        [--keep on|off] [--resident on|off] [--seconds S] [--swap-limit BYTES|off]
        [--plan OUT.json] [--schedule OUT.json] [--gantt OUT.html] [--json]

Plans one iteration of training a model that does not fit in its GPUs, and simulates it. The profile
has a line per microbatch size and layer: ubatch,layer,weight_bytes,fwd_gpu_s,bwd_gpu_s,upd_cpu_s,
fwd_mem_bytes,bwd_mem_bytes,x_elems and, if layers have buffers, buffer_bytes.
  --gpus N            1 to 8; without it, all of the topology
  --memory BYTES      of each GPU (10GiB, bytes)
  --batch D           samples of an iteration, on all GPUs together
  --mode MODE         dp: every GPU has all layers and a part of the samples; pp: the layers go around
                      the GPUs; auto (the default): whichever is faster
  --rules RULES       thimble (the default), or harmony: the published system's own search and timing,
                      to compare with. Its packs fill --memory by its own rule; the published figures
                      are for 10GiB. More memory is never slower by rules thimble; by these it can be
  --prefetch          rules harmony: with prefetch; the published figures are without
  --packers SET       rules harmony: published (balanced_time+reuse, as most published runs; the
                      default without prefetch), all (what its scheduler takes unless told:
                      greedy_reverse_addx+balanced_addx+reuse+balanced_time; the default with
                      prefetch), or names with + between: greedy, greedy_addx, greedy_reverse,
                      greedy_reverse_addx, balanced, balanced_addx, balanced_time, reuse
  --topology FILE     switches, links and NVLinks; without it, one switch with 11.5 GiB/s to the host
                      and 8.2 GiB/s between GPUs, as in the published figures
  --keep on|off       may activations stay for the backward pass instead of being computed again?
  --resident on|off   may packs stay on their GPU between iterations, and be updated there?
  --seconds S         of search on one core, for memory of 256 times the least. Default: 4
  --swap-limit BYTES  what a plan may swap before that counts as lost time; off: any amount, which
                      keeps more activations. Default: a fortieth of what LRU dp without recompute
                      swaps, at least 4 x weights
  --plan PATH         writes the plan for who runs it; --schedule PATH: every step with its times;
                      --gantt PATH: a picture of them, for a browser
  --json              one JSON object on standard output, nothing else there

Figures:
  seconds           of one iteration, simulated
  swap_bytes        between host and GPUs: swap_in_bytes + swap_out_bytes; p2p_bytes: between GPUs
  compute_fraction  of the GPUs' time in which they compute
  peak_bytes        most on any GPU: weights, work, inputs, outputs that wait, all that is prefetched
  compute_bound     seconds of computing alone, if every layer is run again but those of the last pack
  baselines         LRU virtual memory (dp, pp; with and without recompute) and the published search
                    (without prefetch as published; with prefetch and all its packers)
  planning_seconds  taken to plan

Every schedule is checked by code of its own before it is shown.
Exit status: 0 done, 1 failed (no plan fits), 2 bad usage or bad file.
)";

struct Options {
  std::string profile;
  std::string topology;
  Settings settings;
  std::string plan;
  std::string schedule;
  bool json = false;
  bool help = false;
};

absl::Status Check(const Options& options) {
  if (options.help) return absl::OkStatus();
  if (options.profile.empty()) return absl::InvalidArgumentError("no profile given; see --help");
  if (options.settings.memory_bytes <= 0) {
    return absl::InvalidArgumentError("--memory is missing: give the bytes of each GPU, as 10GiB");
  }
  if (options.settings.batch == 0) {
    return absl::InvalidArgumentError("--batch is missing: give the samples of an iteration");
  }
  if (options.settings.gpus == 0 && options.topology.empty()) {
    return absl::InvalidArgumentError("--gpus is missing: give a number from 1 to 8");
  }
  return absl::OkStatus();
}

absl::Status TakePath(const bench::Arguments& arguments, std::string& path) {
  path = std::string(arguments.value());
  if (!path.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(arguments.word(), " needs the path of a file"));
}

absl::StatusOr<Options> ParseArguments(bench::Arguments arguments) {
  constexpr const char* kSettings[][2] = {{"--gpus", "gpus"},       {"--memory", "memory"},
                                          {"--batch", "batch"},     {"--mode", "mode"},
                                          {"--rules", "rules"},     {"--packers", "packers"},
                                          {"--seconds", "seconds"}, {"--swap-limit", "swap_limit"},
                                          {"--keep", "keep"},       {"--resident", "resident"}};
  Options options;
  while (arguments.Next()) {
    const char* key = nullptr;
    for (const auto& [option, name] : kSettings) {
      if (key == nullptr && arguments.IsValueOf(option)) key = name;
    }
    if (key != nullptr) {
      THIMBLE_RETURN_IF_ERROR(Set(key, arguments.value(), options.settings));
    } else if (arguments.IsSwitch("--json")) {
      options.json = true;
    } else if (arguments.IsSwitch("--prefetch")) {
      options.settings.prefetch = true;
    } else if (arguments.IsSwitch("--help") || arguments.IsSwitch("-h")) {
      options.help = true;
    } else if (arguments.IsValueOf("--topology")) {
      THIMBLE_RETURN_IF_ERROR(TakePath(arguments, options.topology));
    } else if (arguments.IsValueOf("--plan")) {
      THIMBLE_RETURN_IF_ERROR(TakePath(arguments, options.plan));
    } else if (arguments.IsValueOf("--schedule")) {
      THIMBLE_RETURN_IF_ERROR(TakePath(arguments, options.schedule));
    } else if (arguments.IsOption()) {
      return absl::InvalidArgumentError(
          absl::StrCat("unknown option '", arguments.word(), "'; see --help"));
    } else if (!options.profile.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", arguments.word(), "' is a second profile: give one"));
    } else {
      options.profile = std::string(arguments.word());
    }
  }
  THIMBLE_RETURN_IF_ERROR(Check(options));
  return options;
}

double Largest(const Schedule& schedule) {
  return *std::max_element(schedule.peak_bytes.begin(), schedule.peak_bytes.end());
}

void PrintJson(const Options& options, const Report& report, double planning_seconds) {
  const Schedule& schedule = report.schedule;
  const Plan& plan = schedule.plan;
  const auto whole = [](double bytes) { return static_cast<std::int64_t>(std::llround(bytes)); };
  absl::PrintF(
      "{\"file\": %s, \"mode\": \"%s\", \"rules\": \"%s\", \"gpus\": %d, \"batch\": %d, "
      "\"seconds\": %.6f, \"swap_bytes\": %d, \"swap_in_bytes\": %d, \"swap_out_bytes\": %d, "
      "\"p2p_bytes\": %d, \"compute_fraction\": %.6f, \"peak_bytes\": %d, ",
      bench::JsonString(options.profile), NameOf(plan.mode), NameOf(plan.rules), plan.gpus,
      plan.batch, schedule.seconds, whole(schedule.in_bytes) + whole(schedule.out_bytes),
      whole(schedule.in_bytes), whole(schedule.out_bytes), whole(schedule.peer_bytes),
      schedule.compute_fraction, whole(Largest(schedule)));
  if (std::isfinite(report.compute_bound)) {
    absl::PrintF("\"compute_bound\": %.6f, ", report.compute_bound);
  }
  absl::PrintF(
      "\"swap_limit\": %d, \"forward_packs\": %d, \"backward_packs\": %d, \"baselines\": %s, "
      "\"planning_seconds\": %.3f}\n",
      whole(report.swap_limit), plan.forward_count(), plan.tasks.size() - plan.forward_count(),
      BaselinesJson(report), planning_seconds);
}

void PrintTable(const Report& report, double planning_seconds) {
  const Schedule& schedule = report.schedule;
  const auto gib = [](double bytes) { return bytes / static_cast<double>(kGiB); };
  const auto line = [&](const std::string& name, double seconds, double swap, double fraction) {
    absl::PrintF("%-24s %10.3f %12.2f %10.1f\n", name, seconds, gib(swap), fraction * 100);
  };
  absl::PrintF("%-24s %10s %12s %10s\n", "", "seconds", "swapped GiB", "compute %");
  line(absl::StrCat(NameOf(schedule.plan.rules), " ", NameOf(schedule.plan.mode)), schedule.seconds,
       schedule.swap_bytes(), schedule.compute_fraction);
  for (int i = 0; i < kBaselines; ++i) {
    if (!report.baselines[i].has_value()) continue;
    const Baseline& one = *report.baselines[i];
    line(NameOf(static_cast<BaselineKind>(i)), one.seconds, one.swap_bytes, one.compute_fraction);
  }
  absl::PrintF("between GPUs %.2f GiB, at most %.2f GiB on a GPU, %d tasks, planned in %.1f s\n",
               gib(schedule.peer_bytes), gib(Largest(schedule)), schedule.plan.tasks.size(),
               planning_seconds);
}

int Run(const Options& options) {
  if (options.help) {
    std::fputs(kHelp, stdout);
    return kDone;
  }
  const auto start = std::chrono::steady_clock::now();
  bench::Progress progress;
  progress.Say(options.profile);
  const absl::StatusOr<Report> report =
      MakeReportOfFiles(options.profile, options.topology, options.settings);
  progress.Clear();
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  if (!report.ok()) {
    absl::FPrintF(stderr, "harmony: %s\n", report.status().message());
    const bool is_input = absl::IsInvalidArgument(report.status()) ||
                          absl::IsNotFound(report.status()) || absl::IsUnavailable(report.status());
    return is_input ? kBadUsage : kFailed;
  }
  for (const auto& [path, text] : {std::pair(options.plan, PlanJson(report->schedule)),
                                   std::pair(options.schedule, ScheduleJson(report->schedule))}) {
    if (path.empty()) continue;
    const absl::Status status = WriteWholeFile(text, path);
    if (!status.ok()) {
      absl::FPrintF(stderr, "harmony: %s\n", status.message());
      return kFailed;
    }
  }
  if (options.json) {
    PrintJson(options, *report, taken.count());
  } else {
    PrintTable(*report, taken.count());
  }
  return kDone;
}

}  // namespace
}  // namespace thimble::harmony

int main(int argc, char** argv) {
  return thimble::bench::RunProgram("harmony", argc, argv, thimble::harmony::ParseArguments,
                                    thimble::harmony::Run);
}
