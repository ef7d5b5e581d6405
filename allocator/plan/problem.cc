#include "allocator/plan/problem.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace thimble::plan {

absl::Status CheckProblem(const Problem& problem) {
  if (problem.buffers.size() > kMaxBuffers) {
    return absl::InvalidArgumentError(absl::StrCat(
        problem.buffers.size(), " buffers are more than ", kMaxBuffers, ": plan a part of them"));
  }
  std::int64_t total = 0;
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    if (buffer.lower >= buffer.upper) {
      return absl::InvalidArgumentError(
          absl::StrCat("buffer ", i, " lives from ", buffer.lower, " until ", buffer.upper,
                       ": the end is excluded, so it must be larger"));
    }
    if (buffer.size <= 0 || buffer.size > kMaxSize) {
      return absl::InvalidArgumentError(
          absl::StrCat("buffer ", i, " has size ", buffer.size, ": it must be from 1 to 2^46"));
    }
    total += buffer.size;
    if (total > kMaxTotalSize) {
      return absl::InvalidArgumentError(
          absl::StrCat("buffer ", i, " with size ", buffer.size,
                       " brings the sum of all sizes over 2^60: use a larger unit than bytes"));
    }
  }
  return absl::OkStatus();
}

std::int64_t MaxLive(const Problem& problem) {
  std::vector<std::pair<std::int64_t, std::int64_t>> changes;  // time, size: ends sort first
  changes.reserve(2 * problem.buffers.size());
  for (const Buffer& buffer : problem.buffers) {
    changes.emplace_back(buffer.lower, buffer.size);
    changes.emplace_back(buffer.upper, -buffer.size);
  }
  std::sort(changes.begin(), changes.end());
  std::int64_t live = 0;
  std::int64_t most = 0;
  for (const auto& [time, change] : changes) {
    live += change;
    most = std::max(most, live);
  }
  return most;
}

}  // namespace thimble::plan
