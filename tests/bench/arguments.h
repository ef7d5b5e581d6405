// The command line of the programs in tests/: files, switches (--json) and values (--seed 7,
// --seed=7).
#pragma once

#include <cstdint>
#include <cstdio>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

namespace thimble::bench {

class Arguments {
 public:
  Arguments(int argc, char** argv) : words_(argv + 1, argv + argc) {}

  // Moves on to the next word; false at the end.
  bool Next();

  absl::string_view word() const { return word_; }
  bool IsOption() const { return !word_.empty() && word_[0] == '-'; }
  bool IsSwitch(absl::string_view name) const { return word_ == name; }

  // If the word is option `name`, takes its value into value(): empty if there is none.
  bool IsValueOf(absl::string_view name);
  absl::string_view value() const { return value_; }

  // value() as a number within [least, most].
  absl::StatusOr<std::uint64_t> Number(absl::string_view name, std::uint64_t least,
                                       std::uint64_t most) const;

 private:
  const std::vector<absl::string_view> words_;
  std::size_t next_ = 0;
  absl::string_view word_;
  absl::string_view value_;
};

// The main() of a program in tests/: parse(arguments) returns options or what is wrong with them,
// and run(options) returns the exit status. It fails if figures could not be written.
template <typename Parse, typename Run>
int RunProgram(absl::string_view name, int argc, char** argv, Parse parse, Run run) {
  constexpr int kFailed = 1;
  constexpr int kBadUsage = 2;
  const auto options = parse(Arguments(argc, argv));
  if (!options.ok()) {
    absl::FPrintF(stderr, "%s: %s\n", name, options.status().message());
    return kBadUsage;
  }
  const int status = run(*options);
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  absl::FPrintF(stderr, "%s: standard output could not be written\n", name);
  return kFailed;
}

}  // namespace thimble::bench
