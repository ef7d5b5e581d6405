#include "allocator/offline/schedule/autoswap.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "allocator/offline/schedule/schedule_builder.h"

namespace thimble::schedule {
namespace {

using Wide = __int128;

// When the block of a window is gone if the engines are idle. May be empty.
struct Absence {
  Ns begin = 0;
  Ns end = 0;
};

class Ranking {
 public:
  Ranking(const Problem& problem, const Machine& machine, const Timeline& timeline)
      : problem_(problem), machine_(machine), timeline_(timeline) {
    for (const Op& op : problem.ops) load_.push_back(op.live_bytes);
  }

  Wide Evaluate(Score score, const Window& window) const {
    const Absence gone = AbsenceOf(window);
    const Wide duration = gone.end - gone.begin;
    switch (score) {
      case Score::kDoa:
        return duration;
      case Score::kAoa:
        return duration * problem_.blocks[window.block].bytes;
      case Score::kWdoa:
      case Score::kSwdoa:
        return Integral(gone);
    }
    return 0;
  }

  // The load is lower for later candidates.
  void Leave(const Window& window) {
    const Absence gone = AbsenceOf(window);
    if (gone.end <= gone.begin) return;
    const std::int32_t last = timeline_.FirstEndingAfter(gone.end);
    for (std::int32_t op = timeline_.FirstFrom(gone.begin); op < last; ++op) {
      load_[op % load_.size()] -= problem_.blocks[window.block].bytes;
    }
  }

 private:
  Absence AbsenceOf(const Window& window) const {
    const std::int64_t bytes = problem_.blocks[window.block].bytes;
    return {timeline_.End(window.after) + OutNs(machine_, bytes),
            timeline_.Start(window.before) - InNs(machine_, bytes)};
  }

  Wide Integral(Absence gone) const {
    Wide sum = 0;
    if (gone.end <= gone.begin) return gone.end - gone.begin;  // never gone: the shorter, the worse
    for (std::int32_t op = timeline_.FirstEndingAfter(gone.begin);; ++op) {
      const Ns begin = std::max(gone.begin, timeline_.Start(op));
      const Ns end = std::min(gone.end, timeline_.End(op));
      if (begin >= gone.end) return sum;
      sum += Wide{end - begin} * load_[op % load_.size()];
    }
  }

  const Problem& problem_;
  const Machine& machine_;
  const Timeline& timeline_;
  std::vector<std::int64_t> load_;  // by op
};

struct Candidate {
  std::size_t window = 0;
  Wide score = 0;
};

// For a heap with the best on top; ties go to the first one.
bool IsWorse(const Candidate& a, const Candidate& b) {
  return a.score != b.score ? a.score < b.score : a.window > b.window;
}

// Scores only fall while others leave. So only the best old score is computed anew; if it is still
// the best, no other can be better.
std::vector<Candidate> RankAsTheyLeave(const std::vector<Window>& windows, Ranking& ranking,
                                       std::vector<Candidate> heap) {
  std::vector<Candidate> ranked;
  std::make_heap(heap.begin(), heap.end(), IsWorse);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), IsWorse);
    Candidate& best = heap.back();
    best.score = ranking.Evaluate(Score::kSwdoa, windows[best.window]);
    if (heap.size() > 1 && IsWorse(best, heap.front())) {
      std::push_heap(heap.begin(), heap.end(), IsWorse);
      continue;
    }
    ranking.Leave(windows[best.window]);
    ranked.push_back(best);
    heap.pop_back();
  }
  return ranked;
}

}  // namespace

const char* NameOf(Score score) {
  switch (score) {
    case Score::kDoa:
      return "DOA";
    case Score::kAoa:
      return "AOA";
    case Score::kWdoa:
      return "WDOA";
    case Score::kSwdoa:
      return "SWDOA";
  }
  return "";
}

std::vector<std::size_t> RankWindows(Score score, const Problem& problem, const Machine& machine,
                                     const Timeline& timeline, const std::vector<Window>& windows) {
  const auto highest =
      std::max_element(problem.ops.begin(), problem.ops.end(),
                       [](const Op& a, const Op& b) { return a.live_bytes < b.live_bytes; });
  const std::int32_t peak = static_cast<std::int32_t>(highest - problem.ops.begin());
  Ranking ranking(problem, machine, timeline);
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < windows.size(); ++i) {
    if (!windows[i].returns || !windows[i].Spans(peak, timeline.ops())) continue;
    candidates.push_back({i, ranking.Evaluate(score, windows[i])});
  }
  if (score == Score::kSwdoa) {
    candidates = RankAsTheyLeave(windows, ranking, std::move(candidates));
  } else {
    std::sort(candidates.begin(), candidates.end(),
              [](const Candidate& a, const Candidate& b) { return IsWorse(b, a); });
  }
  std::vector<std::size_t> order;
  order.reserve(candidates.size());
  for (const Candidate& candidate : candidates) order.push_back(candidate.window);
  return order;
}

Schedule PlanAutoSwap(Score score, const Problem& problem, const Machine& machine,
                      std::int64_t limit) {
  const Timeline timeline(problem);
  const std::vector<Window> windows = FindWindows(problem);
  ScheduleBuilder builder(problem, machine, timeline);
  std::int64_t lowest = builder.peak();
  std::size_t enough = 0;  // swaps for the lowest peak
  for (const std::size_t i : RankWindows(score, problem, machine, timeline, windows)) {
    if (lowest <= limit) break;
    const std::optional<Swap> swap = builder.Place(windows[i]);
    if (!swap) continue;
    builder.Add(*swap);
    if (builder.peak() >= lowest) continue;
    lowest = builder.peak();
    enough = builder.swaps().size();
  }
  ScheduleBuilder best(problem, machine, timeline);
  for (std::size_t i = 0; i < enough; ++i) best.Add(builder.swaps()[i]);
  return best.ToSchedule(NameOf(score));
}

}  // namespace thimble::schedule
