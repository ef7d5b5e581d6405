// Turns a draft into a packing problem, and its plan into a file.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "allocator/plan/planner.h"

namespace thimble {
namespace {

// Most places are known if at most one in kKnown is not.
constexpr std::uint64_t kKnown = 10;

}  // namespace

std::optional<plan::Plan> Planner::Draft::Remembered() const {
  const auto has_none = [](Bytes place) { return place == kNoPlace; };
  const auto unknown = std::count_if(remembered.begin(), remembered.end(), has_none);
  if (remembered.empty() || static_cast<std::uint64_t>(unknown) * kKnown > remembered.size() ||
      !std::all_of(held.begin(), held.end(), has_none)) {
    return std::nullopt;
  }
  plan::Plan plan;
  plan.lower_bound = static_cast<std::int64_t>(lower_bound);
  const auto add = [&plan](Extent place) {
    plan.offsets.push_back(static_cast<std::int64_t>(place.begin));
    plan.height = std::max(plan.height, static_cast<std::int64_t>(place.end));
  };
  Bytes above = ground.region.end;  // sites without a place go here; Adopt() gives them none
  for (std::size_t i = 0; i < sites.size(); ++i) {
    const Bytes place = has_none(remembered[i]) ? above : remembered[i];
    above = std::max(above, place + sizes[i]);
    add({place, place + sizes[i]});
  }
  for (const Extent& obstacle : ground.obstacles) add(obstacle);
  return plan;
}

Learned Planner::Draft::ToLearned(const plan::Plan& plan) const {
  Learned all;
  all.sites = learned;
  absl::flat_hash_map<SiteId, Bytes> places;
  for (std::size_t i = 0; i < sites.size(); ++i) {
    const auto place = static_cast<Bytes>(plan.offsets[i]);
    if (place < ground.region.begin || place + sizes[i] > ground.region.end) continue;
    places[sites[i]] = place - ground.region.begin;
  }
  for (std::size_t i = 0; i < known.size(); ++i) {
    const auto place = places.find(known[i]);
    if (place != places.end()) all.sites[i].place = place->second;
  }
  all.conflicts.resize(known.size() * all.row_words());
  for (std::size_t a = 0; a < known.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      if (conflicts.Has(known[a], known[b])) all.AddConflict(a, b);
    }
  }
  return all;
}

plan::ConflictProblem Planner::Draft::ToProblem() const {
  plan::ConflictProblem problem;
  problem.sizes.assign(sizes.begin(), sizes.end());
  for (const Bytes place : held) {
    problem.fixed.push_back(place == kNoPlace ? plan::kNotFixed : static_cast<std::int64_t>(place));
  }
  for (const Extent& obstacle : ground.obstacles) {
    problem.sizes.push_back(static_cast<std::int64_t>(obstacle.bytes()));
    problem.fixed.push_back(static_cast<std::int64_t>(obstacle.begin));
  }
  const auto count = static_cast<std::int32_t>(problem.sizes.size());
  const auto movable = static_cast<std::int32_t>(sites.size());
  problem.conflicts = plan::Conflicts(count);
  for (std::int32_t a = 0; a < count; ++a) {
    for (std::int32_t b = 0; b < a; ++b) {
      if (a >= movable || conflicts.Has(sites[a], sites[b])) problem.conflicts.Add(a, b);
    }
  }
  problem.lower_bound = static_cast<std::int64_t>(lower_bound);
  return problem;
}

}  // namespace thimble
