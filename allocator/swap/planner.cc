#include "allocator/swap/planner.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/swap/autoswap.h"
#include "allocator/swap/stretch.h"
#include "allocator/swap/target_search.h"

namespace thimble::swap {
namespace {

constexpr int kHalvings = 12;  // of the way between two targets
constexpr std::array<Pauses, 5> kAllPauses = {Pauses::kBeforePeak, Pauses::kEverywhere,
                                              Pauses::kAroundPeak, Pauses::kAtPeak,
                                              Pauses::kAfterPeak};

bool IsBetter(const Schedule& a, const Schedule& b) {
  if (a.peak_bytes != b.peak_bytes) return a.peak_bytes < b.peak_bytes;
  return a.bytes_out + a.bytes_in < b.bytes_out + b.bytes_in;
}

class Search {
 public:
  Search(const Machine& machine, std::uint64_t max_work) : machine_(machine), left_(max_work) {}

  // The lowest peak that is found below that of `best`, in `best`.
  void Lower(const Problem& problem, const std::string& suffix, Schedule* best);
  // A schedule within `limit` that copies as little as can be found.
  std::optional<Schedule> Within(const Problem& problem, std::int64_t limit,
                                 const std::string& suffix);

  bool is_over() const { return left_ == 0; }

 private:
  // What no op needs is not copied.
  static Schedule Finish(Bookings bookings, std::int64_t limit, std::string policy) {
    for (std::size_t i = bookings.swaps().size(); i-- > 0;) bookings.DropIfBelow(i, limit);
    return bookings.ToSchedule(std::move(policy));
  }
  void Spend(std::uint64_t work) { left_ -= std::min(left_, work); }

  const Machine& machine_;
  std::uint64_t left_;  // work
};

void Search::Lower(const Problem& problem, const std::string& suffix, Schedule* best) {
  const Timeline timeline(problem);
  const std::vector<Window> windows = FindWindows(problem);
  const std::int64_t floor = LowestPeak(problem, windows);
  for (const Rule& rule : AllRules()) {
    std::int64_t low = floor - 1;
    std::int64_t high = best->peak_bytes;
    for (int i = 0; i < kHalvings && high - low > 1 && !is_over(); ++i) {
      const std::int64_t limit = low + (high - low) / 2;
      TargetSearch search(problem, machine_, timeline, windows);
      Bookings bookings = search.Run(rule, limit);
      Spend(search.work());
      const std::int64_t peak = bookings.peak();
      (peak <= limit ? high : low) = peak <= limit ? peak : limit;
      if (peak >= best->peak_bytes) continue;
      *best = Finish(std::move(bookings), peak, absl::StrCat(rule.Name(), suffix));
    }
  }
}

std::optional<Schedule> Search::Within(const Problem& problem, std::int64_t limit,
                                       const std::string& suffix) {
  const Timeline timeline(problem);
  const std::vector<Window> windows = FindWindows(problem);
  std::optional<Schedule> best;
  if (LowestPeak(problem, windows) > limit) return best;
  for (const Rule& rule : AllRules()) {
    if (is_over()) return best;
    TargetSearch search(problem, machine_, timeline, windows);
    Bookings bookings = search.Run(rule, limit);
    Spend(search.work());
    if (bookings.peak() > limit) continue;
    Schedule found = Finish(std::move(bookings), limit, absl::StrCat(rule.Name(), suffix));
    const auto copied = [](const Schedule& it) { return it.bytes_out + it.bytes_in; };
    if (!best || copied(found) < copied(*best)) best = std::move(found);
  }
  return best;
}

Schedule BestScore(const Problem& problem, const Machine& machine, std::int64_t limit) {
  std::optional<Schedule> best;
  for (const Score score : kScores) {
    Schedule schedule = PlanAutoSwap(score, problem, machine, limit);
    if (!best || IsBetter(schedule, *best)) best = std::move(schedule);
  }
  return *std::move(best);
}

Ns PauseOf(const Problem& problem, std::int64_t slowdown) {
  return static_cast<Ns>(__int128{StepNs(problem)} * slowdown / kMillion);
}

std::optional<Schedule> WithinAt(std::int64_t slowdown, const Problem& problem, std::int64_t limit,
                                 Search& search) {
  for (const Pauses pauses : kAllPauses) {
    const Stretched stretched = Stretch(problem, pauses, PauseOf(problem, slowdown));
    std::optional<Schedule> found =
        search.Within(stretched.problem, limit, absl::StrCat(", ", NameOf(pauses)));
    if (found) return Unstretch(stretched, *std::move(found));
  }
  return std::nullopt;
}

// The least slowdown with which the limit is kept: doubled until it is, then halved.
std::optional<Schedule> SlowDown(const Problem& problem, std::int64_t limit, Search& search) {
  constexpr std::int64_t kFirst = 2000;
  constexpr std::int64_t kFine = 500;
  std::optional<Schedule> best;
  std::int64_t low = 0;
  std::int64_t high = kFirst;
  while (!best && high <= kMostSlowdown) {
    best = WithinAt(high, problem, limit, search);
    if (!best) low = std::exchange(high, 2 * high);
  }
  while (best && high - low > kFine && !search.is_over()) {
    const std::int64_t middle = low + (high - low) / 2;
    std::optional<Schedule> found = WithinAt(middle, problem, limit, search);
    (found ? high : low) = middle;
    if (found) best = std::move(found);
  }
  return best;
}

absl::StatusOr<Schedule> KeepLimit(const Problem& problem, const Machine& machine,
                                   std::int64_t limit, Search& search) {
  Schedule scored = BestScore(problem, machine, limit);
  std::optional<Schedule> best = search.Within(problem, limit, "");
  if (scored.peak_bytes <= limit &&
      (!best || scored.bytes_out + scored.bytes_in < best->bytes_out + best->bytes_in)) {
    return scored;
  }
  if (!best) best = SlowDown(problem, limit, search);
  if (best) return *std::move(best);
  return absl::ResourceExhaustedError(
      absl::StrCat("no schedule was found that keeps the limit of ", limit,
                   " bytes; with every idle block on the host, ",
                   LowestPeak(problem, FindWindows(problem)), " bytes are left"));
}

}  // namespace

absl::StatusOr<Schedule> PlanSwaps(const Problem& problem, const Machine& machine, const Goal& goal,
                                   const PlanOptions& options) {
  Search search(machine, options.max_work);
  if (goal.limit > 0) return KeepLimit(problem, machine, goal.limit, search);
  Schedule best = BestScore(problem, machine, 0);
  search.Lower(problem, "", &best);
  if (goal.slowdown == 0) return best;
  for (const Pauses pauses : kAllPauses) {
    const Stretched stretched = Stretch(problem, pauses, PauseOf(problem, goal.slowdown));
    Schedule lower = best;
    search.Lower(stretched.problem, absl::StrCat(", ", NameOf(pauses)), &lower);
    if (IsBetter(lower, best)) best = Unstretch(stretched, std::move(lower));
  }
  return best;
}

std::int64_t SlowdownOf(const Problem& problem, const Schedule& schedule) {
  const Ns step = StepNs(problem);
  return static_cast<std::int64_t>(__int128{schedule.step_ns - step} * kMillion / step);
}

}  // namespace thimble::swap
