#include "allocator/offline/schedule/paused_step.h"

#include <algorithm>
#include <utility>

#include "allocator/offline/schedule/timeline.h"

namespace thimble::schedule {
namespace {

constexpr Ns kPlaces = 48;

struct Span {
  Ns begin = 0;
  Ns end = 0;
};

// The part of the step that gets pauses.
Span SpanOf(const Problem& problem, Spread spread) {
  const Timeline timeline(problem);
  const auto highest =
      std::max_element(problem.ops.begin(), problem.ops.end(),
                       [](const Op& a, const Op& b) { return a.live_bytes < b.live_bytes; });
  const Ns peak = timeline.Start(static_cast<std::int32_t>(highest - problem.ops.begin()));
  switch (spread) {
    case Spread::kEverywhere:
      return {0, timeline.period()};
    case Spread::kBeforePeak:
      return {0, peak};
    case Spread::kAfterPeak:
      return {peak, timeline.period()};
    case Spread::kAroundPeak:
      return {peak / 2, peak + (timeline.period() - peak) / 2};
    case Spread::kAtPeak:
      return {peak, peak};
  }
  return {0, timeline.period()};
}

// The sum of pauses up to here if they were spread evenly.
Ns Due(Span span, Ns now, Ns sum) {
  if (now >= span.end) return sum;
  if (now <= span.begin) return 0;
  return static_cast<Ns>(__int128{sum} * (now - span.begin) / (span.end - span.begin));
}

}  // namespace

const char* NameOf(Spread spread) {
  switch (spread) {
    case Spread::kEverywhere:
      return "pauses everywhere";
    case Spread::kBeforePeak:
      return "pauses before the peak";
    case Spread::kAfterPeak:
      return "pauses after the peak";
    case Spread::kAroundPeak:
      return "pauses around the peak";
    case Spread::kAtPeak:
      return "a pause at the peak";
  }
  return "";
}

std::vector<Ns> SpreadPauses(const Problem& problem, Spread spread, Ns sum) {
  const Span span = SpanOf(problem, spread);
  std::vector<Ns> pauses(problem.ops.size());
  Ns now = 0;
  Ns given = 0;
  for (std::size_t i = 0; i < pauses.size(); ++i) {
    const Ns due = Due(span, now, sum);
    if (due > given && (due == sum || due - given > sum / kPlaces)) {
      pauses[i] = due - given;
      given = due;
    }
    now += problem.ops[i].ns;
  }
  pauses.front() += sum - given;
  return pauses;
}

PausedStep AddPauses(const Problem& problem, const std::vector<Ns>& pauses) {
  PausedStep paused;
  std::vector<Op>& ops = paused.problem.ops;
  for (std::size_t i = 0; i < pauses.size(); ++i) {
    const Op& op = problem.ops[i];
    if (pauses[i] > 0) ops.push_back({"pause", 0, pauses[i], op.waiting_bytes, op.waiting_bytes});
    paused.place.push_back(static_cast<std::int32_t>(ops.size()));
    ops.push_back(op);
  }
  const std::int32_t old_count = static_cast<std::int32_t>(problem.ops.size());
  const std::int32_t count = static_cast<std::int32_t>(ops.size());
  const auto move = [&](std::int32_t op) {
    return paused.place[op % old_count] + op / old_count * count;
  };
  paused.problem.blocks = problem.blocks;
  for (Block& block : paused.problem.blocks) {
    for (std::int32_t& touch : block.touches) touch = move(touch);
    // The block is freed before the pause, so that the op waits without it.
    if (block.dies != Block::kLives) block.dies = move(block.dies - 1) + 1;
  }
  return paused;
}

std::int32_t PausedStep::OpAt(std::int32_t op) const {
  const std::int32_t count = static_cast<std::int32_t>(problem.ops.size());
  const std::int32_t ops = static_cast<std::int32_t>(place.size());
  const auto at = std::lower_bound(place.begin(), place.end(), op % count);
  return static_cast<std::int32_t>(at - place.begin()) + op / count * ops;
}

Schedule RemovePauses(const PausedStep& paused, Schedule schedule) {
  std::vector<Ns> starts;
  for (const std::int32_t place : paused.place) starts.push_back(schedule.starts[place]);
  schedule.starts = std::move(starts);
  for (Swap& swap : schedule.swaps) {
    swap.after = paused.OpAt(swap.after);
    swap.before = paused.OpAt(swap.before);
    swap.gone_from = paused.OpAt(swap.gone_from);
    swap.gone_until = paused.OpAt(swap.gone_until);
  }
  return schedule;
}

}  // namespace thimble::schedule
