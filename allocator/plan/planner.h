// Learns what training repeats and proposes a place for each request. Proposals only: the caller
// uses a place if its bytes are free, and finds another one if they are not.
//
// Time is counted in rounds. A round has as many requests as there are recurring sites, about one
// step. After kCalmRounds in which hardly anything was new and every site recurred equally often,
// the planner wants a plan. All that follows happens in quiet moments, when as little memory is in
// use as at any time in the last round: the ends of steps. At the first one WantsDraft() is true:
// the caller packs MakeDraft() on a thread of its own and passes the result to Adopt(). At a later
// one the plan IsDue(): the caller brings memory to the plan's region and calls Activate().
//
// What is held at the end of a step, such as parameters that the next step replaces, keeps the
// place it has when the draft is made, so that the plan can start when the block is there again. If
// the block never returns there, the next plan ignores it.
//
// A site whose place is occupied moves for good to one that is free now and that no conflicting
// site has. Sites that appear later have no place; when many requests of a round have none, the
// planner wants a new plan. A plan that fails most requests of a whole round is dropped.
//
// One plan holds the sites of all kinds of steps: training and evaluation, every sequence length.
// Sites that never meet share bytes, so this costs no memory, and nobody has to guess which kind of
// step comes next.
//
// Invariants (CheckInvariants() proves them, and SiteTable's):
//   L1  The cells of a place are those of the plan area.
//   L2  While a plan serves, every request is a hit, a miss or unplaced.
//
// Not thread-safe: the owning Arena holds its mutex (LockRank::kArena) around every call.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "allocator/base/bytes.h"
#include "allocator/base/stats.h"
#include "allocator/plan/conflict_problem.h"
#include "allocator/plan/plan_area.h"
#include "allocator/plan/plan_file.h"
#include "allocator/plan/problem.h"
#include "allocator/plan/site_table.h"
#include "allocator/vmm/alias_space.h"

namespace thimble {

class Planner {
 public:
  static constexpr std::uint32_t kCalmRounds = 3;
  static constexpr std::uint32_t kShortestRound = 4;

  // Takes over what an earlier process learned: then one round of mostly known requests is enough
  // for a plan. If no such round comes soon, it was another program's, and is forgotten. To be
  // called first.
  void Restore(const Learned& learned);

  // --- On the way of a request -------------------------------------------------------------------

  // The site of a request, taken now; kNoSite if the table is full.
  SiteId Enter(std::uint64_t key, std::uint64_t step, Bytes bytes) {
    ++round_requests_;
    return sites_.Take(key, step, bytes, round_);
  }
  void Leave(SiteId id) {
    sites_.Vacate(id, round_);
    round_low_ = std::min(round_low_, sites_.taken_bytes());
    if (round_requests_ >= round_length_) CloseRound();
    if (sites_.taken_bytes() > low_) return;
    wants_draft_ = wants_plan_;
    is_due_ = waiting_.has_value() || later_moments_ > 0;
  }
  // Reverts Enter() after a request failed. Only for the site that was taken last.
  void Undo(SiteId id);

  // Where the request is to go, if a plan serves and has a place for it; else nullptr.
  const Place* FindPlace(SiteId id) {
    if (!serving_) return nullptr;
    ++stats_.plan_requests;
    if (id != kNoSite && HasPlace(id)) return &sites_.site(id).place;
    ++stats_.plan_unplaced;
    return nullptr;
  }
  void CountHit(SiteId id) {
    ++stats_.plan_hits;
    if (sites_.MarkUsedHere(id)) ++stats_.plan_repeats;
  }
  // The place of `id` is occupied: another one for which `is_free(offset)` is true and which no
  // site in conflict has. It is the site's from now on.
  template <typename IsFree>
  std::optional<Bytes> Repair(SiteId id, IsFree is_free) {
    for (const Bytes offset : PlacesWithoutConflict(id)) {
      if (!is_free(offset)) continue;
      Move(id, offset);
      ++stats_.plan_repairs;
      CountHit(id);
      return offset;
    }
    ++stats_.plan_misses;
    return std::nullopt;
  }

  // Where the plan's own memory is. A site that was taken there keeps its place until it is left,
  // also when the plan does not serve any more.
  PlanArea& area() { return area_; }
  Extent ExtentOf(SiteId id) const {
    const Site& site = sites_.site(id);
    return {site.place.offset, site.place.offset + site.bytes};
  }
  PlanArea::Cells CellsOf(SiteId id) const { return sites_.site(id).place.cells; }
  std::uint64_t KeyOf(SiteId id) const { return sites_.site(id).key; }
  // Calls visit(id) for every site that has a place in the plan that serves.
  template <typename Visit>
  void ForEachPlaced(Visit visit) const {
    for (SiteId id = 0; serving_ && id < sites_.end(); ++id) {
      if (HasPlace(id)) visit(id);
    }
  }

  // --- Planning ----------------------------------------------------------------------------------

  bool WantsDraft() const { return wants_draft_; }
  // Some of what is held cannot have its place: whether the next moment may be better.
  bool PostponeDraft();
  // Whether the block of `id` will stay where it is: it has been there for a long time, or it is
  // the first of its kind.
  bool IsLongLived(SiteId id) const;

  // Where there can be places.
  struct Ground {
    Extent region;                  // for most of them: memory will be brought here
    std::vector<Extent> obstacles;  // where there can be none, up to the end of the region
    Bytes kept = 0;                 // memory that stays outside the region
    Bytes free = 0;                 // of that, between the obstacles
    absl::flat_hash_map<SiteId, Bytes> held;  // where sites are that have a block in the region
    bool has_all_held = true;                 // and all others there, long-lived sites apart
    bool holds_much = false;
  };
  // What there is to pack. It is taken in a moment; ToProblem() takes longer and needs nothing
  // else.
  struct Draft {
    std::vector<SiteId> sites;
    std::vector<Bytes> sizes;  // of these sites
    std::vector<Bytes> held;   // where they are now; kNoPlace for others
    Ground ground;
    SiteConflicts conflicts;  // of all sites, by id
    Bytes peak = 0;           // most bytes that all sites, long-lived ones too, took at once
    Bytes lower_bound = 0;    // of the height

    std::vector<SiteId> known;         // all sites, long-lived ones too
    std::vector<LearnedSite> learned;  // of these
    std::vector<Bytes> remembered;     // places of `sites` in an earlier process, if that is known

    // Buffer i is site i; obstacles follow.
    plan::ConflictProblem ToProblem() const;
    // The plan of an earlier process: for a problem that nearly is the same, and if nothing is
    // held.
    std::optional<plan::Plan> Remembered() const;
    // For a file; without the size of a chunk.
    Learned ToLearned(const plan::Plan& plan) const;
  };
  // All sites except long-lived ones, which are obstacles. No other plan is wanted until Adopt() or
  // Abandon().
  Draft MakeDraft(Ground ground);
  // Places that end above the region are not used.
  void Adopt(const Draft& draft, const plan::Plan& plan);
  void Abandon();

  // Whether Activate() is to be called now. Before, region() should have memory; if it could not be
  // had everywhere, the plan serves nevertheless, and is due a few times more.
  bool IsDue() const { return is_due_; }
  Extent region() const { return waiting_.has_value() ? waiting_->region : region_; }
  // Nobody may sit in the plan area.
  void Activate(bool region_is_whole);
  // Not now: the next moment may be better. A plan for which none is good is given up.
  void Postpone();
  // Whether to wait for a moment at which nothing is in its way.
  bool IsPatient() const;
  // Where the plan that is due wants `id` to be; nothing if anywhere.
  std::optional<Bytes> DuePlaceOf(SiteId id) const;

  PlanStats stats() const;
  bool IsTaken(SiteId id) const { return sites_.Exists(id) && sites_.site(id).taken; }
  std::uint32_t taken_sites() const { return sites_.taken(); }

  void CheckInvariants() const;  // O(sites^2)

 private:
  // What a round began with.
  struct Mark {
    std::uint64_t new_sites = 0;
    std::uint64_t new_conflicts = 0;
    std::uint64_t restored_uses = 0;
    std::uint64_t requests = 0;
    std::uint64_t hits = 0;
  };
  struct Waiting {              // a plan that waits for its moment
    std::vector<Bytes> places;  // by site; kNoPlace for those without
    Extent region;              // ends where the highest place does
    Bytes kept = 0;
    Bytes peak = 0;
    bool holds_much = false;  // at the ends of steps, so that it must be where it was
    std::uint32_t since = 0;  // round
    std::uint32_t postponed = 0;
  };

  bool HasPlace(SiteId id) const { return sites_.site(id).place.offset != kNoPlace; }
  void CloseRound();
  void SetRoundLength();
  bool Recurs(SiteId id) const;
  bool CalmIsLong() const;
  bool IsRestored();
  // Recurring sites without a place, or with one that overlaps a higher one of their conflicts.
  std::uint64_t CountMisplaced() const;
  void Retire();
  std::vector<Bytes> PlacesWithoutConflict(SiteId id) const;
  void Move(SiteId id, Bytes offset);
  void LayOutPlanArea();

  SiteTable sites_;
  PlanArea area_;
  Extent region_;
  bool restored_ = false;          // and it has yet to be seen whether that is of use
  std::vector<Bytes> remembered_;  // by site, from the beginning of the region on
  bool serving_ = false;
  std::uint32_t serving_since_ = 0;  // round
  bool was_good_ = false;            // in one round at least
  std::uint64_t last_failed_ = 0;    // requests without their place in the last round
  bool has_misplaced_ = false;       // sites that failed, and will again
  bool held_repeats_ = true;         // what is held when steps end is at the same places, it seems
  bool wants_plan_ = false;
  std::uint32_t wanted_since_ = 0;     // round
  std::uint32_t draft_postponed_ = 0;  // moments
  bool wants_draft_ = false;
  bool packing_ = false;
  bool is_due_ = false;
  std::uint32_t later_moments_ = 0;  // at which the plan that serves is due again
  std::optional<Waiting> waiting_;
  PlanStats stats_;

  std::uint32_t round_ = 1;
  std::uint32_t round_requests_ = 0;
  std::uint32_t round_length_ = kShortestRound;
  std::uint32_t calm_rounds_ = 0;
  std::uint64_t calm_requests_ = 0;  // in these rounds
  std::uint32_t pause_ = 0;          // rounds until another plan may be wanted
  std::uint32_t next_pause_ = 1;
  Mark mark_;
  Bytes round_low_ = ~Bytes{0};             // least bytes taken at once so far
  Bytes low_ = 0;                           // hardly more than the least of the round before
  std::array<Bytes, kCalmRounds> peaks_{};  // most bytes taken at once, of the last rounds
};

}  // namespace thimble
