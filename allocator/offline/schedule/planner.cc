#include "allocator/offline/schedule/planner.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/offline/schedule/autoswap.h"
#include "allocator/offline/schedule/pause_search.h"
#include "allocator/offline/schedule/paused_step.h"
#include "allocator/offline/schedule/target_search.h"
#include "allocator/offline/schedule/variation.h"

namespace thimble::schedule {
namespace {

// The first rule searches for its target everywhere below the best peak so far, the others only in
// the top part of that range, because all rules are about equally good.
constexpr int kHalvings = 12;
constexpr int kHalvingsNearby = 8;
constexpr std::int64_t kNearby = 16;  // a part of the peak
// Then varies the best schedule to lower its peak by a part; by a smaller part if nothing is found.
constexpr int kRounds = 30000;
constexpr int kPatience = 128;  // rounds
constexpr std::int64_t kFirstPart = 64;
constexpr std::int64_t kLastPart = 4096;
constexpr std::size_t kCheapRules = 4;  // of AllRules(), for many problems in a row
constexpr std::array<Spread, 5> kAllSpreads = {Spread::kBeforePeak, Spread::kEverywhere,
                                               Spread::kAroundPeak, Spread::kAtPeak,
                                               Spread::kAfterPeak};

std::int64_t BytesCopied(const Schedule& schedule) {
  return schedule.bytes_out + schedule.bytes_in;
}

// The first rule of each order, for pauses where they are needed.
constexpr std::array<Rule, 2> kPauseRules = {
    {{Rule::Next::kWorst, Rule::By::kArea}, {Rule::Next::kFirst, Rule::By::kArea}}};

bool IsBetter(const Schedule& a, const Schedule& b) {
  if (a.peak_bytes != b.peak_bytes) return a.peak_bytes < b.peak_bytes;
  return BytesCopied(a) < BytesCopied(b);
}

class Search {
 public:
  explicit Search(const Machine& machine) : machine_(machine) {}

  void Grant(std::uint64_t work) { left_ = work; }
  bool is_over() const { return left_ == 0; }

  // Puts into `best` the lowest peak below it that the first `rules` rules find.
  void Lower(const Problem& problem, std::size_t rules, const std::string& suffix, Schedule* best);
  // The schedule within `limit` with the fewest copied bytes that the search finds.
  std::optional<Schedule> Within(const Problem& problem, std::int64_t limit);
  // The first schedule that the cheap rules find, even if no work is left.
  std::optional<Schedule> AnyWithin(const Problem& problem, std::int64_t limit,
                                    const std::string& suffix);

 private:
  void Vary(const std::vector<Window>& windows, std::int64_t floor, TargetSearch& search,
            Schedule* best);
  // Removes copies that no op needs.
  static Schedule Finish(ScheduleBuilder builder, std::int64_t limit, std::string policy) {
    builder.DropUnneeded(limit);
    return builder.ToSchedule(std::move(policy));
  }
  void Spend(std::uint64_t work) { left_ -= std::min(left_, work); }

  const Machine& machine_;
  std::uint64_t left_ = 0;  // work
};

void Search::Lower(const Problem& problem, std::size_t rules, const std::string& suffix,
                   Schedule* best) {
  const Timeline timeline(problem);
  const std::vector<Window> windows = FindWindows(problem);
  const std::int64_t floor = LowestPeak(problem, windows);
  TargetSearch search(problem, machine_, timeline, windows);
  for (std::size_t k = 0; k < rules; ++k) {
    const Rule rule = AllRules()[k];
    const int halvings = k == 0 ? kHalvings : kHalvingsNearby;
    std::int64_t high = best->peak_bytes;
    std::int64_t low = floor - 1;
    if (k > 0) low = std::max(low, high - high / kNearby);
    for (int i = 0; i < halvings && high - low > 1 && !is_over(); ++i) {
      const std::int64_t limit = low + (high - low) / 2;
      const std::uint64_t before = search.work();
      ScheduleBuilder builder = search.Run(rule, limit);
      Spend(search.work() - before);
      const std::int64_t peak = builder.peak();
      (peak <= limit ? high : low) = peak <= limit ? peak : limit;
      if (peak >= best->peak_bytes) continue;
      *best = Finish(std::move(builder), peak, absl::StrCat(rule.Name(), suffix));
    }
  }
  if (rules == AllRules().size()) Vary(windows, floor, search, best);
}

void Search::Vary(const std::vector<Window>& windows, std::int64_t floor, TargetSearch& search,
                  Schedule* best) {
  Variation variation;
  std::int64_t part = kFirstPart;
  for (int round = 1; round <= kRounds && !is_over(); ++round) {
    const std::int64_t limit = best->peak_bytes - best->peak_bytes / part - 1;
    if (limit < floor) return;
    const TargetSearch::Weights weights = variation.WeightsLike(windows, *best);
    const Rule rule = AllRules()[variation.Index(AllRules().size())];
    const std::uint64_t before = search.work();
    ScheduleBuilder builder = search.Run(rule, limit, weights);
    Spend(search.work() - before);
    const std::int64_t peak = builder.peak();
    if (peak < best->peak_bytes) {
      *best = Finish(std::move(builder), peak, absl::StrCat(rule.Name(), ", varied"));
    } else if (round % kPatience == 0) {
      part = std::min(2 * part, kLastPart);
    }
  }
}

std::optional<Schedule> Search::Within(const Problem& problem, std::int64_t limit) {
  const Timeline timeline(problem);
  const std::vector<Window> windows = FindWindows(problem);
  TargetSearch search(problem, machine_, timeline, windows);
  std::optional<Schedule> best;
  for (const Rule& rule : AllRules()) {
    if (is_over()) break;
    const std::uint64_t before = search.work();
    ScheduleBuilder builder = search.Run(rule, limit);
    Spend(search.work() - before);
    if (builder.peak() > limit) continue;
    Schedule found = Finish(std::move(builder), limit, rule.Name());
    if (!best || BytesCopied(found) < BytesCopied(*best)) best = std::move(found);
  }
  return best;
}

std::optional<Schedule> Search::AnyWithin(const Problem& problem, std::int64_t limit,
                                          const std::string& suffix) {
  const Timeline timeline(problem);
  const std::vector<Window> windows = FindWindows(problem);
  TargetSearch search(problem, machine_, timeline, windows);
  std::optional<Schedule> found;
  for (std::size_t i = 0; i < kCheapRules && !found; ++i) {
    const Rule rule = AllRules()[i];
    ScheduleBuilder builder = search.Run(rule, limit);
    if (builder.peak() > limit) continue;
    found = Finish(std::move(builder), limit, absl::StrCat(rule.Name(), suffix));
  }
  Spend(search.work());
  return found;
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
  for (const Spread spread : kAllSpreads) {
    const PausedStep paused =
        AddPauses(problem, SpreadPauses(problem, spread, PauseOf(problem, slowdown)));
    std::optional<Schedule> found =
        search.AnyWithin(paused.problem, limit, absl::StrCat(", ", NameOf(spread)));
    if (found) return RemovePauses(paused, *std::move(found));
  }
  return std::nullopt;
}

// The least slowdown below `most` that keeps the limit: raises it until the limit is kept, then
// bisects.
std::optional<Schedule> SpreadSlowdown(const Problem& problem, std::int64_t limit,
                                       std::int64_t most, Search& search) {
  constexpr std::int64_t kFirst = 20000;
  constexpr std::int64_t kFine = 500;
  std::optional<Schedule> best;
  std::int64_t low = 0;
  std::int64_t high = kFirst;
  while (!best && high <= most) {
    best = WithinAt(high, problem, limit, search);
    if (!best) low = std::exchange(high, 4 * high);
  }
  while (best && high - low > kFine && !search.is_over()) {
    const std::int64_t middle = low + (high - low) / 2;
    std::optional<Schedule> found = WithinAt(middle, problem, limit, search);
    (found ? high : low) = middle;
    if (found) best = std::move(found);
  }
  return best;
}

// Tries pauses where they are needed, and pauses that are spread.
std::optional<Schedule> SlowDown(const Problem& problem, const Machine& machine, std::int64_t limit,
                                 std::uint64_t max_work, Search& search) {
  PauseSearch pauses(problem, machine);
  std::optional<Schedule> best;
  Ns most = PauseOf(problem, kMostSlowdown);
  for (const Rule& rule : kPauseRules) {
    std::optional<Schedule> found =
        pauses.Keep(rule, limit, most, max_work / (kPauseRules.size() + 1));
    if (!found) continue;
    most = found->step_ns - StepNs(problem) - 1;
    best = std::move(found);
  }
  search.Grant(max_work / (kPauseRules.size() + 1));
  const std::int64_t least = best ? SlowdownOf(problem, *best) : kMostSlowdown;
  std::optional<Schedule> spread = SpreadSlowdown(problem, limit, least, search);
  if (!best || (spread && spread->step_ns < best->step_ns)) best = std::move(spread);
  return best;
}

// The lowest limit that pauses of at most `most` in sum can keep.
void LowerWithPauses(const Problem& problem, const Machine& machine, Ns most,
                     std::uint64_t max_work, Schedule* best) {
  PauseSearch pauses(problem, machine);
  for (const Rule& rule : kPauseRules) {
    std::int64_t high = best->peak_bytes;
    std::int64_t low = high - high / (kNearby / 2);
    const std::uint64_t end = pauses.work() + max_work / kPauseRules.size();
    while (high - low > best->peak_bytes / 1000 && pauses.work() < end) {
      const std::int64_t limit = low + (high - low) / 2;
      std::optional<Schedule> found = pauses.Keep(rule, limit, most, end - pauses.work());
      (found ? high : low) = limit;
      if (found && IsBetter(*found, *best)) *best = *std::move(found);
    }
  }
}

absl::StatusOr<Schedule> KeepLimit(const Problem& problem, const Machine& machine,
                                   std::int64_t limit, std::uint64_t max_work, Search& search) {
  Schedule scored = BestScore(problem, machine, limit);
  std::optional<Schedule> best = search.Within(problem, limit);
  if (scored.peak_bytes <= limit && (!best || BytesCopied(scored) < BytesCopied(*best))) {
    return scored;
  }
  const std::int64_t lowest = LowestPeak(problem, FindWindows(problem));
  if (!best && lowest <= limit) best = SlowDown(problem, machine, limit, max_work / 2, search);
  if (best) return *std::move(best);
  return absl::ResourceExhaustedError(
      absl::StrCat("no schedule was found that keeps the limit of ", limit,
                   " bytes; with every idle block on the host, ", lowest, " bytes are left"));
}

}  // namespace

absl::StatusOr<Schedule> PlanSwaps(const Problem& problem, const Machine& machine, const Goal& goal,
                                   const PlanOptions& options) {
  Search search(machine);
  search.Grant(options.max_work);
  if (goal.limit > 0) return KeepLimit(problem, machine, goal.limit, options.max_work, search);
  Schedule best = BestScore(problem, machine, 0);
  const std::uint64_t parts = goal.slowdown == 0 ? 1 : kAllSpreads.size() + 2;
  search.Grant(options.max_work / parts);
  search.Lower(problem, AllRules().size(), "", &best);
  if (goal.slowdown == 0) return best;
  for (const Spread spread : kAllSpreads) {
    const PausedStep paused =
        AddPauses(problem, SpreadPauses(problem, spread, PauseOf(problem, goal.slowdown)));
    Schedule lower = best;
    search.Grant(options.max_work / parts);
    search.Lower(paused.problem, kCheapRules, absl::StrCat(", ", NameOf(spread)), &lower);
    if (IsBetter(lower, best)) best = RemovePauses(paused, std::move(lower));
  }
  LowerWithPauses(problem, machine, PauseOf(problem, goal.slowdown), options.max_work / parts,
                  &best);
  return best;
}

std::int64_t SlowdownOf(const Problem& problem, const Schedule& schedule) {
  const Ns step = StepNs(problem);
  return static_cast<std::int64_t>(__int128{schedule.step_ns - step} * kMillion / step);
}

}  // namespace thimble::schedule
