// The times at which one copy engine is busy. It does the same in every step, so time is a circle:
// a copy near the end of a step may run into the next step and must not overlap a copy there.
#pragma once

#include <optional>
#include <vector>

#include "allocator/offline/schedule/problem.h"

namespace thimble::schedule {

class CopyEngine {
 public:
  explicit CopyEngine(Ns period) : period_(period) {}

  // The first time at `from` or later at which a copy of `length` can begin and end by `until`. All
  // times >= 0.
  std::optional<Ns> Earliest(Ns from, Ns length, Ns until) const;
  // The last such time.
  std::optional<Ns> Latest(Ns from, Ns length, Ns until) const;

  // [begin, begin + length) must be free.
  void Reserve(Ns begin, Ns length);

 private:
  struct Span {
    Ns begin = 0;
    Ns end = 0;
  };

  // The first or last busy span that a copy at [begin, begin + length) overlaps.
  std::optional<Span> FirstConflict(Ns begin, Ns length) const;
  std::optional<Span> LastConflict(Ns begin, Ns length) const;
  void Insert(Span span);

  const Ns period_;
  std::vector<Span> busy_;  // disjoint, ascending, within [0, period_)
};

}  // namespace thimble::schedule
