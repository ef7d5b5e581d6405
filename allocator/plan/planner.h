// Learns what training repeats and says where each request is to go. Advice only: the caller uses a
// place if its bytes are free, and must know what to do if they are not.
//
// Time is counted in seasons of as many requests as there are seats that recur, about a step. After
// kCalmSeasons in which hardly anything was new, and every seat came as often, a plan is wanted.
// Everything then happens at moments that are as empty as any in the last season, which are the
// ends of steps. At the first of them, WantsDraft() is true: the caller packs MakeDraft() on a
// thread of its own and gives the answer to Adopt(). At a later one, the plan IsDue(): the caller
// sees to it that there is memory in the region of the plan, and calls Activate().
//
// What is held at the end of a step, such as parameters that the next step replaces, gets the place
// that it has when the draft is made, so that the plan can begin as soon as it is there again. If
// it never is, the next plan is made without regard to it.
//
// A seat that finds its place occupied moves, for good, to one that is free now and that none of
// its conflicts has. Seats that appear later have no place; when a season has many requests without
// one, a new plan is wanted. A plan that fails most requests of a whole season is dropped.
//
// One plan holds the seats of all steps there are: training and evaluation, every sequence length.
// Seats that never meet share bytes, so this costs no memory, and nothing has to guess which step
// comes next.
//
// Invariants (CheckInvariants() proves them, and SeatTable's):
//   L1  The cells of a place are those of the floor.
//   L2  While a plan serves, every request is a hit, a miss or homeless.
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
#include "allocator/plan/floor.h"
#include "allocator/plan/plan_file.h"
#include "allocator/plan/problem.h"
#include "allocator/plan/seat_table.h"
#include "allocator/vmm/alias_space.h"

namespace thimble {

class Planner {
 public:
  static constexpr std::uint32_t kCalmSeasons = 3;
  static constexpr std::uint32_t kShortestSeason = 4;

  // What an earlier process has learned: then one season in which most is known is enough for a
  // plan. If there is none soon, it was another program, and is forgotten. To be called first.
  void Restore(const Learned& learned);

  // --- On the way of a request -------------------------------------------------------------------

  // The seat of a request, taken now; kNoSeat if the table is full.
  SeatId Enter(std::uint64_t key, std::uint64_t step, Bytes bytes) {
    ++season_requests_;
    return seats_.Take(key, step, bytes, season_);
  }
  void Leave(SeatId id) {
    seats_.Vacate(id, season_);
    season_low_ = std::min(season_low_, seats_.taken_bytes());
    if (season_requests_ >= season_length_) CloseSeason();
    if (seats_.taken_bytes() > low_) return;
    wants_draft_ = wants_plan_;
    is_due_ = waiting_.has_value() || later_moments_ > 0;
  }
  // The request came to nothing: as if it had not been made. For the seat that was taken last.
  void Undo(SeatId id);

  // Where the request is to go, if a plan serves and has a place for it; else nullptr.
  const Place* FindPlace(SeatId id) {
    if (!serving_) return nullptr;
    ++stats_.plan_requests;
    if (id != kNoSeat && HasPlace(id)) return &seats_.seat(id).place;
    ++stats_.plan_homeless;
    return nullptr;
  }
  void CountHit(SeatId id) {
    ++stats_.plan_hits;
    if (seats_.MarkSatHere(id)) ++stats_.plan_repeats;
  }
  // The place of `id` is occupied: another one for which `is_free(offset)` is true and which no
  // seat in conflict has. It is the seat's from now on.
  template <typename IsFree>
  std::optional<Bytes> Repair(SeatId id, IsFree is_free) {
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

  // Where the plan's own memory is. A seat that was taken there keeps its place until it is left,
  // also when the plan does not serve any more.
  Floor& floor() { return floor_; }
  Extent ExtentOf(SeatId id) const {
    const Seat& seat = seats_.seat(id);
    return {seat.place.offset, seat.place.offset + seat.bytes};
  }
  Floor::Cells CellsOf(SeatId id) const { return seats_.seat(id).place.cells; }
  std::uint64_t KeyOf(SeatId id) const { return seats_.seat(id).key; }
  // Calls visit(id) for every seat that has a place in the plan that serves.
  template <typename Visit>
  void ForEachPlaced(Visit visit) const {
    for (SeatId id = 0; serving_ && id < seats_.end(); ++id) {
      if (HasPlace(id)) visit(id);
    }
  }

  // --- Planning ----------------------------------------------------------------------------------

  bool WantsDraft() const { return wants_draft_; }
  // Some of what is held cannot have its place: whether the next moment may be better.
  bool PostponeDraft();
  // Whether the block of `id` will stay where it is: it has been there for long, or it is the first
  // of its kind.
  bool IsResident(SeatId id) const;

  // Where there can be places.
  struct Ground {
    Extent region;                  // for most of them: memory will be brought here
    std::vector<Extent> obstacles;  // where there can be none, up to the end of the region
    Bytes kept = 0;                 // memory that stays outside the region
    Bytes free = 0;                 // of that, between the obstacles
    absl::flat_hash_map<SeatId, Bytes> held;  // where seats are that have a block in the region
    bool has_all_held = true;                 // and all seats have theirs there, but residents
    bool holds_much = false;
  };
  // What there is to pack. It is taken in a moment; ToProblem() takes longer and needs nothing
  // else.
  struct Draft {
    std::vector<SeatId> seats;
    std::vector<Bytes> sizes;  // of these seats
    std::vector<Bytes> held;   // where they are now; kNoPlace for others
    Ground ground;
    SeatConflicts conflicts;  // of all seats, by id
    Bytes peak = 0;           // the most bytes that all seats, residents too, took at once
    Bytes lower_bound = 0;    // of the height

    std::vector<SeatId> known;         // all there are, residents too
    std::vector<LearnedSeat> learned;  // of these
    std::vector<Bytes> remembered;     // places of `seats` in an earlier process, if that is known

    // Buffer i is seat i; obstacles follow.
    plan::ConflictProblem ToProblem() const;
    // The plan of an earlier process: for a problem that nearly is the same, and if nothing is
    // held.
    std::optional<plan::Plan> Remembered() const;
    // For a file; without the size of a chunk.
    Learned ToLearned(const plan::Plan& plan) const;
  };
  // All seats but residents, which are obstacles. No other plan is wanted until Adopt() or
  // Abandon().
  Draft MakeDraft(Ground ground);
  // Places that end above the region are not used.
  void Adopt(const Draft& draft, const plan::Plan& plan);
  void Abandon();

  // Whether Activate() is to be called now. Before, region() should have memory; if it could not be
  // had everywhere, the plan serves nevertheless, and is due a few times more.
  bool IsDue() const { return is_due_; }
  Extent region() const { return waiting_.has_value() ? waiting_->region : region_; }
  // Nobody may sit on the floor.
  void Activate(bool region_is_whole);
  // Not now: the next moment may be better. A plan for which none is good is given up.
  void Postpone();
  // Whether to wait for a moment at which nothing is in its way.
  bool IsPatient() const;
  // Where the plan that is due wants `id` to be; nothing if anywhere.
  std::optional<Bytes> DuePlaceOf(SeatId id) const;

  PlanStats stats() const;
  bool IsTaken(SeatId id) const { return seats_.Exists(id) && seats_.seat(id).taken; }
  std::uint32_t taken_seats() const { return seats_.taken(); }

  void CheckInvariants() const;  // O(seats^2)

 private:
  // What a season began with.
  struct Mark {
    std::uint64_t new_seats = 0;
    std::uint64_t new_conflicts = 0;
    std::uint64_t restored_uses = 0;
    std::uint64_t requests = 0;
    std::uint64_t hits = 0;
  };
  struct Waiting {              // a plan that waits for its moment
    std::vector<Bytes> places;  // by seat; kNoPlace for those without
    Extent region;              // ends where the highest place does
    Bytes kept = 0;
    Bytes peak = 0;
    bool holds_much = false;  // at the ends of steps, so that it must be where it was
    std::uint32_t since = 0;  // season
    std::uint32_t postponed = 0;
  };

  bool HasPlace(SeatId id) const { return seats_.seat(id).place.offset != kNoPlace; }
  void CloseSeason();
  void SetSeasonLength();
  bool Recurs(SeatId id) const;
  bool CalmIsLong() const;
  bool IsRestored();
  // Recurring seats without a place, or with one that overlaps a higher one of their conflicts.
  std::uint64_t CountMisplaced() const;
  void Retire();
  std::vector<Bytes> PlacesWithoutConflict(SeatId id) const;
  void Move(SeatId id, Bytes offset);
  void LayFloor();

  SeatTable seats_;
  Floor floor_;
  Extent region_;
  bool restored_ = false;          // and it has yet to be seen whether that is of use
  std::vector<Bytes> remembered_;  // by seat, from the beginning of the region on
  bool serving_ = false;
  std::uint32_t serving_since_ = 0;  // season
  bool was_good_ = false;            // in one season at least
  std::uint64_t last_failed_ = 0;    // requests without their place in the last season
  bool has_misplaced_ = false;       // seats that failed, and will again
  bool held_repeats_ = true;         // what is held when steps end is at the same places, it seems
  bool wants_plan_ = false;
  std::uint32_t wanted_since_ = 0;     // season
  std::uint32_t draft_postponed_ = 0;  // moments
  bool wants_draft_ = false;
  bool packing_ = false;
  bool is_due_ = false;
  std::uint32_t later_moments_ = 0;  // at which the plan that serves is due again
  std::optional<Waiting> waiting_;
  PlanStats stats_;

  std::uint32_t season_ = 1;
  std::uint32_t season_requests_ = 0;
  std::uint32_t season_length_ = kShortestSeason;
  std::uint32_t calm_seasons_ = 0;
  std::uint64_t calm_requests_ = 0;  // in these seasons
  std::uint32_t pause_ = 0;          // seasons until another plan may be wanted
  std::uint32_t next_pause_ = 1;
  Mark mark_;
  Bytes season_low_ = ~Bytes{0};             // least bytes taken at once so far
  Bytes low_ = 0;                            // hardly more than the least of the season before
  std::array<Bytes, kCalmSeasons> peaks_{};  // most bytes taken at once, of the last seasons
};

}  // namespace thimble
