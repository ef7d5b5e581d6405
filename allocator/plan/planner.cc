#include "allocator/plan/planner.h"

#include <algorithm>
#include <utility>

#include "allocator/base/check.h"

namespace thimble {
namespace {

// A round is calm if at most one request in kCalm brought a new site, and at most one conflict in
// kCalm is new.
constexpr std::uint64_t kCalm = 50;
// The planner wants a better plan if more than one request in kPoor did not get its place ...
constexpr std::uint64_t kPoor = 1000;
// ... and drops the plan if it was more than one in kUseless.
constexpr std::uint64_t kUseless = 2;
constexpr std::uint32_t kLongestPause = 64;
// At how many ends of steps memory for a serving plan is requested again, and how often a plan may
// be postponed.
constexpr std::uint32_t kLaterMoments = 4;
constexpr std::uint32_t kMostPostponed = 8;
// After this many ends of steps with held blocks at other places, they are not expected to return.
constexpr std::uint32_t kPatience = 4;
// Most requests of a round are known if at most one in kKnown is not.
constexpr std::uint64_t kKnown = 10;
// Restored sites are useless if no such round comes within this many.
constexpr std::uint32_t kStale = 4;
// The bytes held at ends of steps vary: by up to 1/kHardlyMore of what comes and goes in a step.
constexpr Bytes kHardlyMore = 16;
// A site is forgotten if it was not taken in this many rounds.
constexpr std::uint32_t kMemory = 64;

}  // namespace

// --- For every request -------------------------------------------------------------------------

void Planner::Undo(SiteId id) {
  if (id != kNoSite) sites_.Undo(id);
}

// The lowest byte of every gap that is large enough. The last gap has no end.
std::vector<Bytes> Planner::PlacesWithoutConflict(SiteId id) const {
  const Bytes bytes = sites_.site(id).bytes;
  std::vector<Extent> taken;
  for (SiteId other = 0; other < sites_.end(); ++other) {
    if (!HasPlace(other) || other == id) continue;
    if (sites_.conflicts().Has(id, other)) taken.push_back(ExtentOf(other));
  }
  std::sort(taken.begin(), taken.end(),
            [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
  taken.push_back({kNoPlace, kNoPlace});
  std::vector<Bytes> found;
  Bytes begin = 0;
  for (const Extent& extent : taken) {
    if (extent.begin >= begin + bytes) found.push_back(begin);
    begin = std::max(begin, extent.end);
  }
  return found;
}

void Planner::Move(SiteId id, Bytes offset) {
  const Extent place = {offset, offset + sites_.site(id).bytes};
  for (const Bytes border : {place.begin, place.end}) {
    const std::optional<std::uint32_t> index = area_.AddBorder(border);
    if (!index.has_value()) continue;
    for (SiteId other = 0; other < sites_.end(); ++other) {
      PlanArea::Cells& cells = sites_.place(other).cells;
      if (cells.begin >= *index) ++cells.begin;
      if (cells.end >= *index) ++cells.end;
    }
  }
  sites_.SetPlace(id, offset);
  sites_.place(id).cells = area_.CellsOf(place);
}

void Planner::LayOutPlanArea() {
  std::vector<Bytes> borders;
  for (SiteId id = 0; id < sites_.end(); ++id) {
    if (!HasPlace(id)) continue;
    const Extent place = ExtentOf(id);
    borders.insert(borders.end(), {place.begin, place.end});
  }
  area_.Reset(std::move(borders));
  for (SiteId id = 0; id < sites_.end(); ++id) {
    if (HasPlace(id)) sites_.place(id).cells = area_.CellsOf(ExtentOf(id));
  }
}

// --- Rounds -----------------------------------------------------------------------------------

void Planner::CloseRound() {
  const std::uint64_t new_sites = sites_.new_sites() - mark_.new_sites;
  const std::uint64_t new_conflicts = sites_.new_conflicts() - mark_.new_conflicts;
  const bool is_calm =
      new_sites * kCalm <= round_requests_ && new_conflicts * kCalm <= sites_.new_conflicts();
  calm_rounds_ = is_calm ? calm_rounds_ + 1 : 0;
  calm_requests_ = is_calm ? calm_requests_ + round_requests_ : 0;
  const std::uint64_t planned = stats_.plan_requests - mark_.requests;
  const std::uint64_t failed = planned - (stats_.plan_hits - mark_.hits);
  last_failed_ = failed;
  // Not before a whole round: at first, blocks from before the plan are in the way.
  const bool is_judged = serving_ && round_ > serving_since_;
  if (is_judged && failed * kUseless > planned) Retire();
  const bool is_poor = is_judged && failed * kPoor > planned;
  was_good_ = was_good_ || (is_judged && !is_poor);
  // A site that failed fails again whenever that step comes, unless a repair moved it.
  has_misplaced_ = serving_ && (has_misplaced_ || is_poor) && CountMisplaced() > 0;
  const bool is_good = serving_ && !is_poor && !has_misplaced_;
  if (is_judged && is_good && waiting_.has_value()) {
    waiting_.reset();  // its replacement is no longer needed
    is_due_ = false;
  }
  if (pause_ > 0) --pause_;
  if (!wants_plan_) wanted_since_ = round_;
  wants_plan_ = !is_good && !packing_ && !waiting_.has_value() && pause_ == 0 &&
                (IsRestored() || CalmIsLong());
  // An end of a step as empty as the plan waits for may never come.
  wants_draft_ = wants_plan_ && round_ >= wanted_since_ + kMostPostponed;
  if (waiting_.has_value() && round_ >= waiting_->since + kMostPostponed) is_due_ = true;
  ++round_;
  round_requests_ = 0;
  SetRoundLength();
  const Bytes least = std::exchange(round_low_, sites_.taken_bytes());
  low_ = least + (sites_.peak_bytes() - least) / kHardlyMore;
  peaks_[round_ % peaks_.size()] = sites_.peak_bytes();
  sites_.ResetPeak();
  mark_ = {sites_.new_sites(), sites_.new_conflicts(), sites_.restored_uses(), stats_.plan_requests,
           stats_.plan_hits};
}

void Planner::SetRoundLength() {
  std::uint32_t recurring = 0;
  for (SiteId id = 0; id < sites_.end(); ++id) recurring += Recurs(id) ? 1 : 0;
  round_length_ = std::max(kShortestRound, recurring);
}

void Planner::Restore(const Learned& learned) {
  sites_.Restore(learned);
  for (const LearnedSite& site : learned.sites) remembered_.push_back(site.place);
  restored_ = true;
  SetRoundLength();
}

// Whether the restored sites have proved useful.
bool Planner::IsRestored() {
  if (!restored_) return false;
  const std::uint64_t known = sites_.restored_uses() - mark_.restored_uses;
  if ((round_requests_ - known) * kKnown <= round_requests_) return true;
  if (round_ >= kStale || CalmIsLong()) {
    restored_ = false;
    sites_.ForgetBefore(1);
    ++stats_.plans_stale;
  }
  return false;
}

bool Planner::CalmIsLong() const {
  if (calm_rounds_ < kCalmRounds) return false;
  std::uint64_t sites = 0;  // taken since the calm began
  for (SiteId id = 0; id < sites_.end(); ++id) {
    if (sites_.Exists(id) && sites_.site(id).taken_in + calm_rounds_ > round_) ++sites;
  }
  return calm_requests_ >= kCalmRounds * sites;
}

std::uint64_t Planner::CountMisplaced() const {
  struct Placed {
    Extent place;
    SiteId id;
  };
  std::vector<Placed> placed;
  std::uint64_t misplaced = 0;
  for (SiteId id = 0; id < sites_.end(); ++id) {
    if (!Recurs(id)) continue;
    if (HasPlace(id)) {
      placed.push_back({ExtentOf(id), id});
    } else {
      ++misplaced;
    }
  }
  std::sort(placed.begin(), placed.end(),
            [](const Placed& a, const Placed& b) { return a.place.begin < b.place.begin; });
  const auto clashes = [&](std::size_t lower) {
    for (std::size_t i = lower + 1; i < placed.size(); ++i) {
      if (placed[i].place.begin >= placed[lower].place.end) return false;
      if (sites_.conflicts().Has(placed[lower].id, placed[i].id)) return true;
    }
    return false;
  };
  for (std::size_t i = 0; i < placed.size(); ++i) misplaced += clashes(i) ? 1 : 0;
  return misplaced;
}

// A request that came only once belongs to the start of the program, not to a step.
bool Planner::Recurs(SiteId id) const {
  return sites_.Exists(id) && sites_.site(id).uses >= SiteTable::kOften && !IsLongLived(id);
}

bool Planner::IsLongLived(SiteId id) const {
  const Site& site = sites_.site(id);
  const bool for_long = site.taken_in + kCalmRounds <= round_;
  return site.taken && (for_long || site.uses < SiteTable::kOften);
}

void Planner::Retire() {
  serving_ = false;
  later_moments_ = 0;
  calm_rounds_ = 0;
  calm_requests_ = 0;
  held_repeats_ = true;
  // After a plan that was never good, the next one is unlikely to be: pause longer.
  if (was_good_) next_pause_ = 1;
  pause_ = next_pause_;
  ++stats_.plans_retired;
}

// --- Planning ----------------------------------------------------------------------------------

bool Planner::PostponeDraft() {
  if (!held_repeats_ || draft_postponed_ == kPatience) return false;
  ++draft_postponed_;
  wants_draft_ = false;
  return true;
}

Planner::Draft Planner::MakeDraft(Ground ground) {
  wants_plan_ = wants_draft_ = false;
  draft_postponed_ = 0;
  packing_ = true;
  if (round_ > kMemory) sites_.ForgetBefore(round_ - kMemory);
  Draft draft;
  Bytes long_lived = 0;
  for (SiteId id = 0; id < sites_.end(); ++id) {
    if (sites_.Exists(id) && IsLongLived(id)) long_lived += sites_.site(id).bytes;
    if (!Recurs(id)) continue;
    draft.sites.push_back(id);
    draft.sizes.push_back(sites_.site(id).bytes);
    const auto held = held_repeats_ ? ground.held.find(id) : ground.held.end();
    draft.held.push_back(held == ground.held.end() ? kNoPlace : held->second);
    if (restored_) {
      const Bytes place = id < remembered_.size() ? remembered_[id] : kNoPlace;
      draft.remembered.push_back(place == kNoPlace ? kNoPlace : ground.region.begin + place);
    }
  }
  sites_.ForEachByRank([&](SiteId id) {
    const Site& site = sites_.site(id);
    draft.known.push_back(id);
    draft.learned.push_back({site.key, site.bytes, Recurs(id), kNoPlace});
  });
  ground.obstacles.resize(std::min(ground.obstacles.size(), plan::kMaxSlots - draft.sites.size()));
  draft.conflicts = sites_.conflicts();
  draft.peak = *std::max_element(peaks_.begin(), peaks_.end());
  const Bytes elsewhere = std::min(draft.peak, long_lived + ground.free);
  draft.lower_bound = ground.region.begin + draft.peak - elsewhere;
  draft.ground = std::move(ground);
  restored_ = false;
  return draft;
}

void Planner::Adopt(const Draft& draft, const plan::Plan& plan) {
  packing_ = false;
  pause_ = next_pause_;
  next_pause_ = std::min(2 * next_pause_, kLongestPause);
  Waiting waiting;
  waiting.places.assign(sites_.end(), kNoPlace);
  waiting.region = {draft.ground.region.begin, draft.ground.region.begin};
  waiting.kept = draft.ground.kept;
  waiting.peak = draft.peak;
  waiting.holds_much = draft.ground.holds_much && held_repeats_;
  waiting.since = round_;
  std::uint64_t unplaced = 0;
  for (std::size_t i = 0; i < draft.sites.size(); ++i) {
    const auto place = static_cast<Bytes>(plan.offsets[i]);
    const Bytes end = place + draft.sizes[i];
    if (end > draft.ground.region.end) {
      ++unplaced;
      continue;
    }
    waiting.places[draft.sites[i]] = place;
    waiting.region.end = std::max(waiting.region.end, end);
  }
  // Keeps the serving plan unless this one is better.
  if (serving_ && unplaced >= std::max(last_failed_, CountMisplaced())) return;
  waiting_ = std::move(waiting);
  is_due_ = sites_.taken_bytes() <= low_;  // a step ends just now
}

void Planner::Abandon() {
  packing_ = false;
  pause_ = kLongestPause;
}

void Planner::Activate(bool region_is_whole) {
  is_due_ = false;
  if (waiting_.has_value()) {
    waiting_->places.resize(sites_.end(), kNoPlace);
    for (SiteId id = 0; id < sites_.end(); ++id) sites_.SetPlace(id, waiting_->places[id]);
    LayOutPlanArea();
    region_ = waiting_->region;
    stats_.plan_height = waiting_->kept + region_.bytes();
    stats_.plan_lower_bound = waiting_->peak;
    ++stats_.plans;
    serving_ = true;
    serving_since_ = round_;
    was_good_ = false;
    has_misplaced_ = false;
    later_moments_ = kLaterMoments + 1;
    waiting_.reset();
  }
  later_moments_ = region_is_whole || later_moments_ == 0 ? 0 : later_moments_ - 1;
}

bool Planner::IsPatient() const {
  return waiting_.has_value() && (waiting_->holds_much || waiting_->postponed < kPatience);
}

void Planner::Postpone() {
  is_due_ = false;
  if (!waiting_.has_value()) return;
  ++waiting_->postponed;
  if (waiting_->holds_much && waiting_->postponed >= kPatience) {
    held_repeats_ = false;
    waiting_.reset();
    pause_ = 0;
  } else if (waiting_->postponed >= kMostPostponed) {
    waiting_.reset();
    pause_ = kLongestPause;
  }
}

std::optional<Bytes> Planner::DuePlaceOf(SiteId id) const {
  Bytes place = kNoPlace;
  if (!waiting_.has_value()) {
    place = sites_.site(id).place.offset;
  } else if (id < waiting_->places.size()) {
    place = waiting_->places[id];
  }
  return place == kNoPlace ? std::nullopt : std::optional(place);
}

PlanStats Planner::stats() const {
  PlanStats stats = stats_;
  stats.plan_sites = sites_.size();
  if (!serving_) stats.plan_height = stats.plan_lower_bound = 0;
  return stats;
}

void Planner::CheckInvariants() const {
  sites_.CheckInvariants();
  for (SiteId id = 0; id < sites_.end(); ++id) {
    if (!HasPlace(id)) continue;
    const PlanArea::Cells cells = area_.CellsOf(ExtentOf(id));
    THIMBLE_CHECK(cells.begin == CellsOf(id).begin && cells.end == CellsOf(id).end,
                  "L1: a place has the wrong cells");
  }
  THIMBLE_CHECK(
      stats_.plan_requests == stats_.plan_hits + stats_.plan_misses + stats_.plan_unplaced,
      "L2: a request was counted twice or not at all");
}

}  // namespace thimble
