#include <algorithm>
#include <utility>
#include <vector>

#include "allocator/offline/harmony/plan_search.h"

namespace thimble::harmony {
namespace {

// Moves a border by a power of two of layers; `firsts` begin with 0 and stay below `limit`.
bool MoveBorder(std::vector<int>& firsts, int limit, int which, int by) {
  if (which == 0 || which >= static_cast<int>(firsts.size())) return false;
  const int next = which + 1 < static_cast<int>(firsts.size()) ? firsts[which + 1] : limit;
  const int at = firsts[which] + by;
  if (at <= firsts[which - 1] || at >= next) return false;
  firsts[which] = at;
  return true;
}

}  // namespace

bool PlanSearch::ChangeOnce(Shape& shape) {
  const int layers = costs_.layer_count();
  const int reach = layers > 200 ? 5 : 4;
  const int by = (1 << Random(reach)) * (Random(2) == 0 ? 1 : -1);
  if (is_refining_ && options_.may_keep && Random(3) == 0) return ChangeKeep(shape);
  if (shape.resident_first != Shape::kNoLayer && Random(4) == 0) {
    shape.resident_first = std::clamp(shape.resident_first + by, 0, layers - 1);
    return true;
  }
  const int kind = Random(16);
  if (kind < 6 || kind < 11) {
    std::vector<int>& firsts = kind < 6 ? shape.backward : shape.forward;
    if (firsts.size() < 2) return false;
    return MoveBorder(firsts, shape.fused_first, 1 + Random(static_cast<int>(firsts.size()) - 1),
                      by);
  }
  if (kind == 11) {
    const int at = shape.fused_first + by;
    if (shape.forward.empty() || at <= shape.forward.back() || at <= shape.backward.back() ||
        at >= layers) {
      return false;
    }
    shape.fused_first = at;
    if (!shape.keep.empty()) shape.keep.resize(at, Keep::kNothing);
    return true;
  }
  if (kind <= 13) {
    int& count = kind == 12 ? (Random(2) == 0 ? shape.forward_count : shape.backward_count)
                            : shape.fused_count;
    const int next = count + (Random(2) == 0 ? 1 : -1);
    const int share = ShareOf(shape.mode);
    if (next < 1 || next > share || EvenSplit(share, next)[0] > costs_.largest()) return false;
    count = next;
    return true;
  }
  std::vector<int>& firsts = Random(2) == 0 ? shape.backward : shape.forward;
  if (firsts.empty()) return false;
  const int which = Random(static_cast<int>(firsts.size()));
  if (kind == 14) {  // merge two
    if (which == 0) return false;
    firsts.erase(firsts.begin() + which);
    return true;
  }
  const int next =
      which + 1 < static_cast<int>(firsts.size()) ? firsts[which + 1] : shape.fused_first;
  if (next - firsts[which] < 2) return false;
  firsts.insert(firsts.begin() + which + 1, firsts[which] + 1 + Random(next - firsts[which] - 1));
  return true;
}

void PlanSearch::Change(std::uint64_t budget) {
  constexpr int kPatience = 400;
  const std::vector<Candidate> starts = elite_;
  std::size_t start = 0;
  Candidate current = starts[0];
  int stale = 0;
  while (!IsOver(budget)) {
    Shape shape = current.shape;
    const int changes = 1 + Random(3);
    bool has_changed = false;
    for (int i = 0; i < changes; ++i) has_changed |= ChangeOnce(shape);
    ++stale;
    ++plans_;  // even if nothing can be changed, so that this ends
    if (has_changed && Bound(shape) < current.cost) {
      Candidate changed = Simulate(shape, current.cost);
      if (changed.cost <= current.cost) {
        if (changed.cost < current.cost) stale = 0;
        current = std::move(changed);
        if (current.cost < elite_.front().cost) elite_.front() = current;
      }
    }
    if (stale <= kPatience) continue;
    start = (start + 1) % starts.size();
    current = start == 0 ? elite_.front() : starts[start];
    stale = 0;
  }
}

}  // namespace thimble::harmony
