// One device, one irregular program, six allocators: who gets through? Everything is computed here
// and now, on a workload that is generated for the occasion.
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/bench/measure.h"
#include "tests/bench/subject.h"
#include "tests/bench/workload.h"
#include "tests/workloads/generators.h"

namespace thimble::bench {
namespace {

constexpr std::uint64_t kSeed = 7;
constexpr Bytes kHeadroomPercent = 2;

struct Outcome {
  PolicyKind kind = PolicyKind::kThimble;
  std::optional<Bytes> fit_bytes;
  std::size_t done_ops = 0;
  bool finished = false;
  std::uint64_t driver_calls = 0;
};

Workload MakeDecoding() {
  for (const workloads::Generator& generator : workloads::AllGenerators()) {
    if (std::string(generator.name) != "decode") continue;
    const std::string text = workloads::Generate(generator, generator.default_ops, kSeed);
    return MakeWorkload(generator.name, ParseTrace(text, generator.name).value());
  }
  return {};
}

// How far the policy gets with `capacity`.
void RunOnce(const Workload& workload, Bytes capacity, Outcome* outcome) {
  Subject subject(outcome->kind, capacity, Sizing::kNatural);
  Addresses addresses(workload.ids);
  outcome->finished = true;
  for (const TraceOp& op : workload.ops) {
    if (!ReplayOp(op, &subject.policy(), &addresses)) {
      outcome->finished = false;
      break;
    }
    ++outcome->done_ops;
  }
  outcome->driver_calls = subject.device().driver_calls();
}

std::string Sentence(const Workload& workload, const Outcome& outcome) {
  const std::string name(PolicyName(outcome.kind));
  if (outcome.finished) return absl::StrFormat("%s gets through to the last token.", name);
  return absl::StrFormat(
      "%s runs out of memory after %.1f %% of the work.", name,
      100.0 * static_cast<double>(outcome.done_ops) / static_cast<double>(workload.ops.size()));
}

void PrintTable(const Workload& workload, const std::vector<Outcome>& outcomes) {
  absl::PrintF("%-11s %15s %9s %13s   %s\n", "policy", "needs", "/ live", "driver calls",
               "on this device");
  for (const Outcome& outcome : outcomes) {
    const Bytes needs = outcome.fit_bytes.value_or(0);
    absl::PrintF("%-11s %15s %9.3f %13d   %s\n", PolicyName(outcome.kind), FormatBytes(needs),
                 static_cast<double>(needs) / static_cast<double>(workload.max_live_bytes),
                 outcome.driver_calls, Sentence(workload, outcome));
  }
}

int Run() {
  const Workload workload = MakeDecoding();
  absl::PrintF("Eager decoding for six users: %d allocations and frees, at most %s live at once.\n",
               workload.recorded_ops, FormatBytes(workload.max_live_bytes));
  std::vector<Outcome> outcomes;
  for (const PolicyKind kind : AllPolicies()) {
    Outcome& outcome = outcomes.emplace_back();
    outcome.kind = kind;
    outcome.fit_bytes = FindFit(workload, kind);
  }
  const Bytes needed = outcomes.front().fit_bytes.value_or(workload.max_live_bytes);
  const Bytes capacity = RoundUp(needed + needed * kHeadroomPercent / 100, kFitQuantum);
  for (Outcome& outcome : outcomes) RunOnce(workload, capacity, &outcome);
  absl::PrintF("The device has %s: what Thimble needs, and %d %% more.\n\n", FormatBytes(capacity),
               kHeadroomPercent);
  PrintTable(workload, outcomes);
  absl::PrintF(
      "\n\"needs\" is the smallest capacity at which three runs in a row succeed. bfc is the\n"
      "allocator of the TensorFlow wheel itself; gmlake, expandable (PyTorch) and cnmem are "
      "written\n"
      "from their published code. The device is host memory with CUDA's rules.\n");
  return outcomes.front().finished ? 0 : 1;
}

}  // namespace
}  // namespace thimble::bench

int main() { return thimble::bench::Run(); }
