#include "allocator/offline/schedule/pause_search.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "allocator/offline/schedule/paused_step.h"
#include "allocator/offline/schedule/schedule_builder.h"
#include "allocator/offline/schedule/windows.h"

namespace thimble::schedule {
namespace {

constexpr Ns kLeastPart = 1000;            // of the step: no pause grows by less
constexpr Ns kGrowth = 8;                  // nor by less than this part of all pauses
constexpr std::uint64_t kRoundWork = 200;  // for each op and block, in units of one op visited
constexpr int kMostRounds = 300;           // most attempts
constexpr int kShrinks = 6;                // steps of bisection between no pauses and all

Ns SumOf(const std::vector<Ns>& pauses) {
  return std::accumulate(pauses.begin(), pauses.end(), Ns{0});
}

}  // namespace

bool PauseSearch::AddWhatIsMissing(const ScheduleBuilder& builder, std::int32_t op,
                                   std::int64_t limit, const std::vector<Window>& windows,
                                   const PausedStep& paused, std::vector<Ns>* pauses) const {
  const std::vector<std::int64_t>& left = builder.left();
  const std::int32_t count = static_cast<std::int32_t>(left.size());
  const std::int64_t excess = left[op] - limit;
  absl::flat_hash_set<std::pair<std::int32_t, std::int32_t>> gone;  // block and `after`
  for (const Swap& swap : builder.swaps()) gone.emplace(swap.block, swap.after);
  const Window* best = nullptr;
  ScheduleBuilder::Lack best_lack;
  __int128 best_cost = 0;  // nanoseconds for the whole excess
  for (const Window& window : windows) {
    if (!window.Spans(op, count) || gone.contains({window.block, window.after})) continue;
    const std::int32_t at = op > window.after ? op : op + count;
    const std::optional<ScheduleBuilder::Lack> lack = builder.LackFor(window, at);
    if (!lack) continue;
    const std::int64_t bytes = std::min(problem_.blocks[window.block].bytes, excess);
    const __int128 cost = __int128{lack->out + lack->in} * excess / bytes;
    if (best != nullptr && cost >= best_cost) continue;
    best = &window;
    best_lack = *lack;
    best_cost = cost;
  }
  if (best == nullptr) return false;
  const Ns least = std::max(StepNs(problem_) / kLeastPart, SumOf(*pauses) / kGrowth) + 1;
  const std::int32_t ops = static_cast<std::int32_t>(pauses->size());
  // If a pause itself is over the limit, a longer one does not help: the op before it must wait.
  const bool is_pause = paused.place[paused.OpAt(op) % ops] != op;
  const std::int32_t waits = (paused.OpAt(op) + ops - (is_pause ? 1 : 0)) % ops;
  if (best_lack.out > 0 || best_lack.in == 0) {
    (*pauses)[waits] += std::max(best_lack.out, least);
  }
  if (best_lack.in > 0) {
    (*pauses)[paused.OpAt(best->before) % ops] += std::max(best_lack.in, least);
  }
  return true;
}

std::optional<Schedule> PauseSearch::Try(const Rule& rule, std::int64_t limit,
                                         std::vector<Ns>* pauses) {
  const PausedStep paused = AddPauses(problem_, *pauses);
  const Timeline timeline(paused.problem);
  const std::vector<Window> windows = FindWindows(paused.problem);
  TargetSearch search(paused.problem, machine_, timeline, windows);
  ScheduleBuilder builder = search.Run(rule, limit);
  work_ += search.work() + kRoundWork * (problem_.ops.size() + problem_.blocks.size());
  if (builder.peak() > limit) {
    const std::int32_t op = search.NextOp(rule, limit, builder.left());
    if (!AddWhatIsMissing(builder, op, limit, windows, paused, pauses)) pauses->clear();
    return std::nullopt;
  }
  builder.DropUnneeded(limit);
  return RemovePauses(paused, builder.ToSchedule(absl::StrCat(rule.Name(), ", pauses as needed")));
}

std::optional<Schedule> PauseSearch::Keep(const Rule& rule, std::int64_t limit, Ns most,
                                          std::uint64_t max_work) {
  const std::uint64_t end = work_ + max_work;
  std::vector<Ns> pauses(problem_.ops.size());
  std::optional<Schedule> best;
  // The sum may exceed `most` by a quarter, because shrinking may get below it.
  for (int round = 0; round < kMostRounds && !best && !pauses.empty(); ++round) {
    if (SumOf(pauses) > most + most / 4 || work_ >= end) break;
    best = Try(rule, limit, &pauses);
  }
  if (!best) return std::nullopt;
  Ns low = 0;
  Ns high = 1 << kShrinks;
  while (high - low > 1 && work_ < end) {
    const Ns middle = (low + high) / 2;
    std::vector<Ns> fewer = pauses;
    for (Ns& pause : fewer) pause = pause * middle >> kShrinks;
    std::optional<Schedule> found = Try(rule, limit, &fewer);
    (found ? high : low) = middle;
    if (found) best = std::move(found);
  }
  if (best->step_ns - StepNs(problem_) > most) return std::nullopt;
  return best;
}

}  // namespace thimble::schedule
