#include "allocator/swap/stretch.h"

#include <algorithm>
#include <utility>

#include "allocator/swap/timeline.h"

namespace thimble::swap {
namespace {

constexpr Ns kPlaces = 48;

struct Span {
  Ns begin = 0;
  Ns end = 0;
};

// The part of the step over which pauses are spread.
Span SpanOf(const Problem& problem, Pauses pauses) {
  const Timeline timeline(problem);
  const auto highest =
      std::max_element(problem.ops.begin(), problem.ops.end(),
                       [](const Op& a, const Op& b) { return a.live_bytes < b.live_bytes; });
  const Ns peak = timeline.Start(static_cast<std::int32_t>(highest - problem.ops.begin()));
  switch (pauses) {
    case Pauses::kEverywhere:
      return {0, timeline.period()};
    case Pauses::kBeforePeak:
      return {0, peak};
    case Pauses::kAfterPeak:
      return {peak, timeline.period()};
    case Pauses::kAroundPeak:
      return {peak / 2, peak + (timeline.period() - peak) / 2};
    case Pauses::kAtPeak:
      return {peak, peak};
  }
  return {0, timeline.period()};
}

// What should have been given by now, if pauses were spread evenly.
Ns Due(Span span, Ns now, Ns sum) {
  if (now >= span.end) return sum;
  if (now <= span.begin) return 0;
  return static_cast<Ns>(__int128{sum} * (now - span.begin) / (span.end - span.begin));
}

}  // namespace

const char* NameOf(Pauses pauses) {
  switch (pauses) {
    case Pauses::kEverywhere:
      return "pauses everywhere";
    case Pauses::kBeforePeak:
      return "pauses before the peak";
    case Pauses::kAfterPeak:
      return "pauses after the peak";
    case Pauses::kAroundPeak:
      return "pauses around the peak";
    case Pauses::kAtPeak:
      return "a pause at the peak";
  }
  return "";
}

Stretched Stretch(const Problem& problem, Pauses pauses, Ns sum) {
  const Span span = SpanOf(problem, pauses);
  Stretched stretched;
  std::vector<Op>& ops = stretched.problem.ops;
  Ns now = 0;
  Ns given = 0;
  for (const Op& op : problem.ops) {
    const Ns due = Due(span, now, sum);
    if (due > given && (due == sum || due - given > sum / kPlaces)) {
      ops.push_back({"pause", 0, due - given, op.waiting_bytes, op.waiting_bytes});
      given = due;
    }
    stretched.place.push_back(static_cast<std::int32_t>(ops.size()));
    ops.push_back(op);
    now += op.ns;
  }
  if (given < sum) {
    const std::int64_t waiting = ops.front().waiting_bytes;
    ops.push_back({"pause", 0, sum - given, waiting, waiting});
  }
  const std::int32_t old_count = static_cast<std::int32_t>(problem.ops.size());
  const std::int32_t count = static_cast<std::int32_t>(ops.size());
  const auto move = [&](std::int32_t op) {
    return stretched.place[op % old_count] + op / old_count * count;
  };
  stretched.problem.blocks = problem.blocks;
  for (Block& block : stretched.problem.blocks) {
    for (std::int32_t& touch : block.touches) touch = move(touch);
    // It is freed before the pause, not after it: then an op waits without it.
    if (block.dies != Block::kLives) block.dies = move(block.dies - 1) + 1;
  }
  return stretched;
}

Schedule Unstretch(const Stretched& stretched, Schedule schedule) {
  const std::int32_t count = static_cast<std::int32_t>(stretched.problem.ops.size());
  const std::int32_t ops = static_cast<std::int32_t>(stretched.place.size());
  // The first op at or after one of the step with pauses.
  const auto move = [&](std::int32_t op) {
    const auto place = std::lower_bound(stretched.place.begin(), stretched.place.end(), op % count);
    return static_cast<std::int32_t>(place - stretched.place.begin()) + op / count * ops;
  };
  std::vector<Ns> starts;
  for (const std::int32_t place : stretched.place) starts.push_back(schedule.starts[place]);
  schedule.starts = std::move(starts);
  for (Swap& swap : schedule.swaps) {
    swap.after = move(swap.after);
    swap.before = move(swap.before);
    swap.gone_from = move(swap.gone_from);
    swap.gone_until = move(swap.gone_until);
  }
  return schedule;
}

}  // namespace thimble::swap
