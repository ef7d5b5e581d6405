#include "allocator/plan/conflict_problem.h"

#include "absl/strings/str_cat.h"
#include "allocator/plan/problem.h"

namespace thimble::plan {
namespace {

absl::Status Wrong(std::int32_t buffer, absl::string_view what, std::int64_t value,
                   absl::string_view remedy) {
  return absl::InvalidArgumentError(
      absl::StrCat("buffer ", buffer, " has ", what, " ", value, ": ", remedy));
}

absl::Status CheckFixed(const ConflictProblem& problem) {
  const std::int32_t count = static_cast<std::int32_t>(problem.sizes.size());
  std::vector<std::int32_t> fixed;
  for (std::int32_t i = 0; i < count; ++i) {
    const std::int64_t offset = problem.fixed[i];
    if (offset == kNotFixed) continue;
    if (offset < 0 || offset > kMaxTotalSize || offset % problem.alignment != 0) {
      return Wrong(i, "the fixed offset", offset,
                   absl::StrCat("it must be a multiple of ", problem.alignment, " up to 2^60"));
    }
    for (const std::int32_t other : fixed) {
      if (problem.conflicts.Has(i, other) && offset < problem.fixed[other] + problem.sizes[other] &&
          problem.fixed[other] < offset + problem.sizes[i]) {
        return Wrong(i, "the fixed offset", offset,
                     absl::StrCat("it overlaps buffer ", other, ", with which it conflicts"));
      }
    }
    fixed.push_back(i);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckConflictProblem(const ConflictProblem& problem) {
  if (problem.sizes.size() > kMaxSlots) {
    return absl::InvalidArgumentError(absl::StrCat(problem.sizes.size(), " buffers are more than ",
                                                   kMaxSlots, ": plan the largest of them"));
  }
  const std::int32_t count = static_cast<std::int32_t>(problem.sizes.size());
  if (problem.alignment < 1 || problem.alignment > kMaxSize) {
    return absl::InvalidArgumentError(
        absl::StrCat("alignment ", problem.alignment, " is not from 1 to 2^46"));
  }
  if (!problem.fixed.empty() && problem.fixed.size() != problem.sizes.size()) {
    return absl::InvalidArgumentError(absl::StrCat(problem.fixed.size(), " fixed offsets for ",
                                                   problem.sizes.size(),
                                                   " buffers: give each one"));
  }
  for (std::int32_t i = 0; i < count; ++i) {
    const std::int64_t size = problem.sizes[i];
    if (size <= 0 || size > kMaxSize) return Wrong(i, "size", size, "it must be from 1 to 2^46");
    if (size % problem.alignment != 0) {
      return Wrong(i, "size", size, absl::StrCat("it must be a multiple of ", problem.alignment));
    }
    if (problem.conflicts.Has(i, i)) {
      return Wrong(i, "a conflict with", i, "a buffer may share bytes with itself");
    }
  }
  return problem.fixed.empty() ? absl::OkStatus() : CheckFixed(problem);
}

}  // namespace thimble::plan
