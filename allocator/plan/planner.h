// Learns what training repeats and proposes a place for each request. The caller uses the place if
// its bytes are free, and another one if not.
//
// Time is counted in rounds. A round has as many requests as there are recurring sites, about one
// step. After kCalmRounds in which hardly anything was new and every site recurred equally often,
// the planner wants a plan. All that follows happens at ends of steps: the times at which hardly
// more memory is in use than at the emptiest time of the last round. At the first one WantsDraft()
// is true: the caller packs MakeDraft() on a thread of its own and passes the result to Adopt(). At
// a later one IsDue() is true: the caller brings memory to the plan's region and calls Activate().
//
// A block that is held at the end of a step, such as parameters that the next step replaces, keeps
// in the plan the place that it has when the draft is made. So the plan can start as soon as the
// block is at that place again. If it never is, the next plan ignores that place.
//
// A site whose place is occupied moves for good to a place that is free now and that no conflicting
// site has. Sites that appear later have no place. When many requests of a round have none, the
// planner wants a new plan. It drops a plan that fails most requests of a whole round.
//
// One plan holds the sites of all kinds of steps: training and evaluation, every sequence length.
// Sites that are never in use at the same time share bytes, so this costs no memory, and the
// planner need not guess which kind of step comes next.
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

  // Takes over what an earlier process learned. Then one round of mostly known requests is enough
  // for a plan. If no such round comes soon, another program learned it, and the planner forgets
  // it. Call this first.
  void Restore(const Learned& learned);

  // --- For every request -------------------------------------------------------------------------

  // Takes the site of a request; kNoSite if the table is full.
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

  // The request's place if a plan serves and has one; else nullptr.
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
  // The place of `id` is occupied: moves the site for good to a place for which `is_free(offset)`
  // is true and which no conflicting site has. nullopt if there is none.
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

  // The plan's own memory. A site that was taken there keeps its place until it is left, even after
  // the plan was dropped.
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
  // Some held blocks cannot keep their places. True if the draft is postponed to a later end of a
  // step.
  bool PostponeDraft();
  // Whether the block of `id` will probably stay: it has been in use for a long time, or its site
  // was never used before.
  bool IsLongLived(SiteId id) const;

  // Where places may be.
  struct Ground {
    Extent region;                            // for most places: memory will be brought here
    std::vector<Extent> obstacles;            // no places here; up to the end of the region
    Bytes kept = 0;                           // memory that stays outside the region
    Bytes free = 0;                           // part of `kept` that is free between obstacles
    absl::flat_hash_map<SiteId, Bytes> held;  // places of sites whose blocks are in the region
    bool has_all_held = true;                 // `held` has all blocks there but long-lived ones
    bool holds_much = false;
  };
  // The input of the packing. MakeDraft() is quick; ToProblem() takes longer and needs only the
  // draft.
  struct Draft {
    std::vector<SiteId> sites;
    std::vector<Bytes> sizes;  // of these sites
    std::vector<Bytes> held;   // their current places; kNoPlace if not held
    Ground ground;
    SiteConflicts conflicts;  // of all sites, by id
    Bytes peak = 0;           // most bytes that all sites, including long-lived ones, took at once
    Bytes lower_bound = 0;    // of the height

    std::vector<SiteId> known;         // all sites, including long-lived ones
    std::vector<LearnedSite> learned;  // of `known`
    std::vector<Bytes> remembered;     // places of `sites` in an earlier process; empty if unknown

    // Buffer i is site i; obstacles follow.
    plan::ConflictProblem ToProblem() const;
    // The plan of an earlier process, if the problem is nearly the same and no block is held.
    std::optional<plan::Plan> Remembered() const;
    // For a file. The caller adds the size of a chunk.
    Learned ToLearned(const plan::Plan& plan) const;
  };
  // All sites except long-lived ones, which are obstacles. The planner wants no other plan until
  // Adopt() or Abandon().
  Draft MakeDraft(Ground ground);
  // Places that end above the region are not used.
  void Adopt(const Draft& draft, const plan::Plan& plan);
  void Abandon();

  // Whether the caller should call Activate() now. First it should bring memory to region(). If
  // parts of the region stay without memory, the plan serves nevertheless, and is due again a few
  // times.
  bool IsDue() const { return is_due_; }
  Extent region() const { return waiting_.has_value() ? waiting_->region : region_; }
  // No block may be in the plan area.
  void Activate(bool region_is_whole);
  // Waits for a later end of a step. Gives the plan up after too many.
  void Postpone();
  // Whether to wait for an end of a step at which no block is in the way.
  bool IsPatient() const;
  // The place of `id` in the plan that is due; nullopt if it has none.
  std::optional<Bytes> DuePlaceOf(SiteId id) const;

  PlanStats stats() const;
  bool IsTaken(SiteId id) const { return sites_.Exists(id) && sites_.site(id).taken; }
  std::uint32_t taken_sites() const { return sites_.taken(); }

  void CheckInvariants() const;  // O(sites^2)

 private:
  // Counters at the start of a round.
  struct Mark {
    std::uint64_t new_sites = 0;
    std::uint64_t new_conflicts = 0;
    std::uint64_t restored_uses = 0;
    std::uint64_t requests = 0;
    std::uint64_t hits = 0;
  };
  struct Waiting {              // a plan that is not yet active
    std::vector<Bytes> places;  // by site; kNoPlace for those without
    Extent region;              // ends where the highest place does
    Bytes kept = 0;
    Bytes peak = 0;
    bool holds_much = false;  // many blocks are held at ends of steps, and must be at their places
    std::uint32_t since = 0;  // round
    std::uint32_t postponed = 0;
  };

  bool HasPlace(SiteId id) const { return sites_.site(id).place.offset != kNoPlace; }
  void CloseRound();
  void SetRoundLength();
  bool Recurs(SiteId id) const;
  bool CalmIsLong() const;
  bool IsRestored();
  // Recurring sites without a place, or whose place overlaps a higher one of a conflicting site.
  std::uint64_t CountMisplaced() const;
  void Retire();
  std::vector<Bytes> PlacesWithoutConflict(SiteId id) const;
  void Move(SiteId id, Bytes offset);
  void LayOutPlanArea();

  SiteTable sites_;
  PlanArea area_;
  Extent region_;
  bool restored_ = false;          // and not yet known to be of use
  std::vector<Bytes> remembered_;  // by site, counted from the start of the region
  bool serving_ = false;
  std::uint32_t serving_since_ = 0;  // round
  bool was_good_ = false;            // in at least one round
  std::uint64_t last_failed_ = 0;    // requests without their place in the last round
  bool has_misplaced_ = false;       // some sites failed, and will again
  bool held_repeats_ = true;  // held blocks seem to be at the same places whenever a step ends
  bool wants_plan_ = false;
  std::uint32_t wanted_since_ = 0;     // round
  std::uint32_t draft_postponed_ = 0;  // how often
  bool wants_draft_ = false;
  bool packing_ = false;
  bool is_due_ = false;
  std::uint32_t later_moments_ = 0;  // ends of steps at which the serving plan is due again
  std::optional<Waiting> waiting_;
  PlanStats stats_;

  std::uint32_t round_ = 1;
  std::uint32_t round_requests_ = 0;
  std::uint32_t round_length_ = kShortestRound;
  std::uint32_t calm_rounds_ = 0;
  std::uint64_t calm_requests_ = 0;  // in the calm rounds
  std::uint32_t pause_ = 0;          // rounds until the planner may want another plan
  std::uint32_t next_pause_ = 1;
  Mark mark_;
  Bytes round_low_ = ~Bytes{0};             // least bytes taken at once so far
  Bytes low_ = 0;                           // least of the round before, and a little more
  std::array<Bytes, kCalmRounds> peaks_{};  // most bytes taken at once, of the last rounds
};

}  // namespace thimble
