#include "tests/simgpu/driver/cells.h"

#include <algorithm>
#include <iterator>

namespace simgpu {

void AddUse(const Use& use, std::vector<Use>* uses) {
  const auto same = std::find_if(uses->begin(), uses->end(),
                                 [&use](const Use& one) { return one.stream == use.stream; });
  if (same == uses->end()) {
    uses->push_back(use);
  } else if (same->sequence < use.sequence) {
    *same = use;
  }
}

Cells::Map::iterator Cells::Cut(Address at) {
  const auto next = cells_.lower_bound(at);
  if (next == cells_.begin()) return next;
  Cell& before = std::prev(next)->second;
  if (before.end <= at) return next;
  const Cell rest = before;
  before.end = at;
  return cells_.emplace_hint(next, at, rest);
}

void Cells::Add(Address begin, Bytes bytes, const std::vector<Use>& uses) {
  const Address end = begin + bytes;
  auto next = Cut(begin);
  Cut(end);
  for (Address at = begin; at < end;) {
    if (next == cells_.end() || next->first > at) {
      const Address until = next == cells_.end() ? end : std::min(end, next->first);
      next = std::next(cells_.emplace_hint(next, at, Cell{until, uses}));
      at = until;
    } else {
      for (const Use& use : uses) AddUse(use, &next->second.uses);
      at = next->second.end;
      ++next;
    }
  }
}

std::vector<Use> Cells::Take(Address begin, Bytes bytes) {
  const Address end = begin + bytes;
  std::vector<Use> uses;
  auto next = Cut(begin);
  Cut(end);
  while (next != cells_.end() && next->first < end) {
    for (const Use& use : next->second.uses) AddUse(use, &uses);
    next = cells_.erase(next);
  }
  return uses;
}

}  // namespace simgpu
