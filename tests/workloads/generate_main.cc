// Writes a synthetic trace to standard output. See --help.
#include <cstdio>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/status_macros.h"
#include "tests/bench/arguments.h"
#include "tests/workloads/generators.h"

namespace thimble::workloads {
namespace {

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kBadUsage = 2;
constexpr std::uint64_t kDefaultSeed = 7;
constexpr std::uint64_t kMostOps = 100'000'000;

struct Options {
  const Generator* generator = nullptr;
  std::uint64_t ops = 0;  // 0: the generator's own
  std::uint64_t seed = kDefaultSeed;
  bool help = false;
};

std::string Names() {
  std::string names;
  for (const Generator& generator : AllGenerators()) {
    absl::StrAppend(&names, names.empty() ? "" : ", ", generator.name);
  }
  return names;
}

absl::StatusOr<const Generator*> FindGenerator(absl::string_view name) {
  for (const Generator& generator : AllGenerators()) {
    if (generator.name == name) return &generator;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", name, "' is no workload; use one of ", Names()));
}

absl::StatusOr<Options> ParseArguments(bench::Arguments arguments) {
  Options options;
  while (arguments.Next()) {
    if (arguments.IsSwitch("--help") || arguments.IsSwitch("-h")) {
      options.help = true;
    } else if (arguments.IsValueOf("--ops")) {
      THIMBLE_ASSIGN_OR_RETURN(options.ops, arguments.Number("--ops", 1, kMostOps));
    } else if (arguments.IsValueOf("--seed")) {
      THIMBLE_ASSIGN_OR_RETURN(options.seed, arguments.Number("--seed", 0, ~std::uint64_t{0}));
    } else if (arguments.IsOption() || options.generator != nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("unexpected argument '", arguments.word(), "'; see --help"));
    } else {
      THIMBLE_ASSIGN_OR_RETURN(options.generator, FindGenerator(arguments.word()));
    }
  }
  if (options.generator == nullptr && !options.help) {
    return absl::InvalidArgumentError(absl::StrCat("no workload given; use one of ", Names()));
  }
  return options;
}

int ShowHelp() {
  std::fputs(
      "generate NAME [--ops N] [--seed S]\n\n"
      "Writes a trace of about N allocations and frees to standard output.\n\n",
      stdout);
  for (const Generator& generator : AllGenerators()) {
    absl::PrintF("  %-11s %s (%d)\n", generator.name, generator.what, generator.default_ops);
  }
  absl::PrintF("\nIn brackets: N by default. The default of S is %d.\n", kDefaultSeed);
  return kDone;
}

int Run(const Options& options) {
  if (options.help) return ShowHelp();
  const Generator& generator = *options.generator;
  const std::uint64_t ops = options.ops != 0 ? options.ops : generator.default_ops;
  const std::string text = Generate(generator, ops, options.seed);
  absl::PrintF("# %s --ops %d --seed %d: %s\n", generator.name, ops, options.seed, generator.what);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    std::perror("generate: cannot write the trace");
    return kFailed;
  }
  return kDone;
}

}  // namespace
}  // namespace thimble::workloads

int main(int argc, char** argv) {
  const auto options = thimble::workloads::ParseArguments(thimble::bench::Arguments(argc, argv));
  if (!options.ok()) {
    absl::FPrintF(stderr, "generate: %s\n", options.status().message());
    return thimble::workloads::kBadUsage;
  }
  return thimble::workloads::Run(*options);
}
