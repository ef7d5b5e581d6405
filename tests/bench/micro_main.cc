// Measures the cost of an allocation on BFC and on Thimble, with and without plans, in the same
// run. See --help.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/json.h"
#include "tests/bench/progress.h"
#include "tests/bench/subject.h"

namespace thimble::bench {
namespace {

constexpr char kHelp[] =
    R"(micro [--json] [--benchmark_...]

Nanoseconds per pair of one allocation and one free, for bfc, thimble and thimble_plan, all with
4 GiB at hand:
  pair        1 KiB
  batch       1000 allocations of 1 KiB, then 1000 frees
  random      256 B to 2 MiB, 1000 blocks live, a random one replaced
  step        1000 allocations of 256 KiB to 2 MiB by 1000 ops, freed in the opposite order: what
              training repeats, which thimble_plan serves from its plan
  threads_2   the pair from 2 threads at once: wall time by all pairs
  threads_8   the pair from 8 threads at once
The best of five repetitions, in random order. --json: one object per line on standard output.
)";

constexpr Bytes kCapacity = 4 * kGiB;
constexpr Bytes kPairBytes = kKiB;
constexpr std::size_t kBlocks = 1000;

void Pair(benchmark::State& state, Policy* policy) {
  const auto stream = std::uint64_t{0};
  for (auto _ : state) {
    policy->Free(policy->Allocate(kPairBytes, stream, 0), stream);
  }
}

void Batch(benchmark::State& state, Policy* policy) {
  std::vector<std::uint64_t> blocks(kBlocks);
  for (auto _ : state) {
    for (std::uint64_t& block : blocks) block = policy->Allocate(kPairBytes, 0, 0);
    for (const std::uint64_t block : blocks) policy->Free(block, 0);
  }
}

void RandomSizes(benchmark::State& state, Policy* policy) {
  constexpr Bytes kSmallest = 256;
  constexpr int kDoublings = 14;
  std::mt19937 random(7);
  std::vector<std::uint64_t> blocks(kBlocks);
  for (std::uint64_t& block : blocks)
    block = policy->Allocate(kSmallest << random() % kDoublings, 0, 0);
  for (auto _ : state) {
    std::uint64_t& block = blocks[random() % kBlocks];
    policy->Free(block, 0);
    block = policy->Allocate(kSmallest << random() % kDoublings, 0, 0);
  }
  for (const std::uint64_t block : blocks) policy->Free(block, 0);
}

void Step(benchmark::State& state, Policy* policy) {
  constexpr Bytes kSmallest = 256 * kKiB;
  std::mt19937 random(7);
  std::vector<Bytes> sizes(kBlocks);
  for (Bytes& size : sizes) size = kSmallest + random() % (7 * kSmallest);
  std::vector<std::uint64_t> blocks(kBlocks);
  const auto run = [&] {
    policy->BeginStep();
    for (std::size_t i = 0; i < kBlocks; ++i) blocks[i] = policy->Allocate(sizes[i], 0, i + 1);
    for (std::size_t i = kBlocks; i-- > 0;) policy->Free(blocks[i], 0);
  };
  for (int learning = 0; learning < 10; ++learning) run();
  for (auto _ : state) run();
}

struct Micro {
  const char* name;
  void (*run)(benchmark::State&, Policy*);
  int threads;
  double pairs_per_iteration;
};

constexpr Micro kMicros[] = {
    {"pair", Pair, 1, 1},       {"batch", Batch, 1, kBlocks}, {"random", RandomSizes, 1, 1},
    {"step", Step, 1, kBlocks}, {"threads_2", Pair, 2, 1},    {"threads_8", Pair, 8, 1},
};

constexpr PolicyKind kPolicies[] = {PolicyKind::kBfc, PolicyKind::kThimble,
                                    PolicyKind::kThimblePlan};

std::string RunName(const Micro& micro, PolicyKind kind) {
  return absl::StrCat(micro.name, "/", PolicyName(kind));
}

// Keeps the best repetition of each benchmark and prints nothing itself.
class BestOf final : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context& /*context*/) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.run_type == Run::RT_Aggregate || run.error_occurred) continue;
      const auto [best, is_new] =
          best_.try_emplace(run.run_name.function_name, run.GetAdjustedRealTime());
      if (!is_new) best->second = std::min(best->second, run.GetAdjustedRealTime());
    }
  }

  // Nothing was measured if a filter left it out.
  double ns(const Micro& micro, PolicyKind kind) const {
    const auto found = best_.find(RunName(micro, kind));
    if (found == best_.end()) return std::numeric_limits<double>::quiet_NaN();
    return found->second / micro.pairs_per_iteration;
  }

 private:
  std::map<std::string, double> best_;
};

void PrintJson(const BestOf& best) {
  for (const Micro& micro : kMicros) {
    for (const PolicyKind kind : kPolicies) {
      const double ns = best.ns(micro, kind);
      const double ratio = ns / best.ns(micro, PolicyKind::kBfc);
      if (!(ratio > 0)) continue;
      absl::PrintF("{\"name\": %s, \"policy\": %s, \"ns\": %.6g, \"ratio_to_bfc\": %.6g}\n",
                   JsonString(micro.name), JsonString(PolicyName(kind)), ns, ratio);
    }
  }
}

void PrintTable(const BestOf& best) {
  absl::PrintF("%-10s %10s %12s %15s %17s %20s\n", "", "bfc ns", "thimble ns", "thimble / bfc",
               "thimble_plan ns", "thimble_plan / bfc");
  for (const Micro& micro : kMicros) {
    const double bfc = best.ns(micro, PolicyKind::kBfc);
    const double thimble = best.ns(micro, PolicyKind::kThimble);
    const double plan = best.ns(micro, PolicyKind::kThimblePlan);
    if (!(thimble / bfc > 0)) continue;
    absl::PrintF("%-10s %10.1f %12.1f %15.3f %17.1f %20.3f\n", micro.name, bfc, thimble,
                 thimble / bfc, plan, plan / bfc);
  }
}

int Run(std::vector<std::string> arguments, bool json) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  int argc = static_cast<int>(argv.size());
  argv.push_back(nullptr);
  benchmark::Initialize(&argc, argv.data());
  if (argc > 1) {
    absl::FPrintF(stderr, "micro: unknown option '%s'; see --help\n", argv[1]);
    return 2;
  }
  std::vector<std::unique_ptr<Subject>> subjects;
  for (const PolicyKind kind : kPolicies) {
    for (const Micro& micro : kMicros) {
      subjects.push_back(std::make_unique<Subject>(kind, kCapacity, Sizing::kNatural));
      Policy* policy = &subjects.back()->policy();
      benchmark::RegisterBenchmark(
          RunName(micro, kind).c_str(),
          [run = micro.run, policy](benchmark::State& state) { run(state, policy); })
          ->Threads(micro.threads)
          ->UseRealTime();
    }
  }
  BestOf best;
  {
    Progress progress;
    progress.Say("micro benchmarks");
    benchmark::RunSpecifiedBenchmarks(&best);
  }
  (json ? PrintJson : PrintTable)(best);
  return 0;
}

}  // namespace
}  // namespace thimble::bench

int main(int argc, char** argv) {
  // These come before the user's own, which therefore take precedence.
  std::vector<std::string> arguments = {argv[0], "--benchmark_repetitions=5",
                                        "--benchmark_min_time=0.1",
                                        "--benchmark_enable_random_interleaving=true"};
  bool json = false;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--help" || argument == "-h") {
      std::fputs(thimble::bench::kHelp, stdout);
      return 0;
    }
    if (argument == "--json") {
      json = true;
    } else {
      arguments.push_back(argument);
    }
  }
  return thimble::bench::Run(std::move(arguments), json);
}
