#include "allocator/plan/validator.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/base/status_macros.h"

namespace thimble::plan {
namespace {

absl::Status Overlap(std::size_t a, std::int64_t a_begin, std::int64_t a_end, std::size_t b,
                     std::int64_t b_begin, std::int64_t b_end) {
  return absl::InternalError(absl::StrCat("buffers ", std::min(a, b), " and ", std::max(a, b),
                                          " overlap: [", a_begin, ", ", a_end, ") and [", b_begin,
                                          ", ", b_end, ")"));
}

// `size_of(i)` for i < count.
template <typename SizeOf>
absl::Status CheckHeight(std::size_t count, const Plan& plan, SizeOf size_of) {
  if (plan.offsets.size() != count) {
    return absl::InternalError(
        absl::StrCat(plan.offsets.size(), " offsets for ", count, " buffers"));
  }
  std::int64_t height = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (plan.offsets[i] < 0) {
      return absl::InternalError(absl::StrCat("buffer ", i, " has offset ", plan.offsets[i]));
    }
    height = std::max(height, plan.offsets[i] + size_of(i));
  }
  if (plan.height != height) {
    return absl::InternalError(
        absl::StrCat("the plan is ", height, " high, but claims to be ", plan.height));
  }
  return absl::OkStatus();
}

}  // namespace

// Sweeps through time and keeps the live buffers by offset: a new range can only overlap its
// neighbours there.
absl::Status ValidatePlan(const Problem& problem, const Plan& plan) {
  THIMBLE_RETURN_IF_ERROR(CheckHeight(problem.buffers.size(), plan,
                                      [&](std::size_t i) { return problem.buffers[i].size; }));
  // Time, whether it starts, index.
  std::vector<std::tuple<std::int64_t, bool, std::size_t>> events;
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    events.emplace_back(problem.buffers[i].lower, true, i);
    events.emplace_back(problem.buffers[i].upper, false, i);
  }
  std::sort(events.begin(), events.end());
  std::map<std::int64_t, std::size_t> live;  // indices by offset
  const auto end_of = [&](std::size_t i) { return plan.offsets[i] + problem.buffers[i].size; };
  for (const auto& [time, starts, i] : events) {
    const std::int64_t begin = plan.offsets[i];
    if (!starts) {
      live.erase(begin);
      continue;
    }
    const auto above = live.lower_bound(begin);
    if (above != live.end() && above->first < end_of(i)) {
      return Overlap(i, begin, end_of(i), above->second, above->first, end_of(above->second));
    }
    if (above != live.begin()) {
      const auto below = std::prev(above);
      if (end_of(below->second) > begin) {
        return Overlap(i, begin, end_of(i), below->second, below->first, end_of(below->second));
      }
    }
    live.emplace_hint(above, begin, i);
  }
  return absl::OkStatus();
}

absl::Status ValidatePlan(const ConflictProblem& problem, const Plan& plan) {
  const std::size_t count = problem.sizes.size();
  THIMBLE_RETURN_IF_ERROR(
      CheckHeight(count, plan, [&](std::size_t i) { return problem.sizes[i]; }));
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t begin = plan.offsets[i];
    if (begin % problem.alignment != 0) {
      return absl::InternalError(absl::StrCat("buffer ", i, " has offset ", begin,
                                              ", not a multiple of ", problem.alignment));
    }
    if (!problem.fixed.empty() && problem.fixed[i] != kNotFixed && problem.fixed[i] != begin) {
      return absl::InternalError(absl::StrCat("buffer ", i, " is fixed at ", problem.fixed[i],
                                              ", but has offset ", begin));
    }
    for (std::size_t k = 0; k < i; ++k) {
      if (plan.offsets[k] < begin + problem.sizes[i] &&
          begin < plan.offsets[k] + problem.sizes[k] &&
          problem.conflicts.Has(static_cast<std::int32_t>(i), static_cast<std::int32_t>(k))) {
        return Overlap(i, begin, begin + problem.sizes[i], k, plan.offsets[k],
                       plan.offsets[k] + problem.sizes[k]);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace thimble::plan
