// Writes a problem of a family to standard output: generate FAMILY BUFFERS SEED > FILE.csv
#include <cstdint>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "tests/plan/problems.h"

int main(int argc, char** argv) {
  using namespace thimble::plan;
  std::int32_t count = 0;
  std::uint64_t seed = 0;
  const absl::string_view family = argc == 4 ? argv[1] : "";
  const bool is_known =
      family == "random" || family == "cut" || family == "training" || family == "staggered";
  if (!is_known || !absl::SimpleAtoi(argv[2], &count) || count < 1 ||
      !absl::SimpleAtoi(argv[3], &seed)) {
    absl::FPrintF(stderr, "generate: write random|cut|training|staggered BUFFERS SEED\n");
    return 2;
  }
  Random random(seed);
  const Problem problem = family == "random"     ? RandomProblem(count, count, 1 << 20, random)
                          : family == "cut"      ? CutProblem(count, 1 << 20, random)
                          : family == "training" ? TrainingProblem(count, random)
                                                 : StaggeredProblem(count, random);
  absl::PrintF("id,lower,upper,size\n");
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    absl::PrintF("%d,%d,%d,%d\n", i, buffer.lower, buffer.upper, buffer.size);
  }
  return 0;
}
