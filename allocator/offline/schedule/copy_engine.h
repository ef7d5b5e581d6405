// When one copy engine is busy. What it does in a step it does in every step, so time is a circle:
// a copy near the end of a step may go on into the next one, and must not meet what that one does.
#pragma once

#include <optional>
#include <vector>

#include "allocator/offline/schedule/problem.h"

namespace thimble::schedule {

class CopyEngine {
 public:
  explicit CopyEngine(Ns period) : period_(period) {}

  // When a copy of `length` can begin: the first such time at `from` or later, so that it ends at
  // `until` or earlier. All times >= 0.
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

  // The busy span that a copy at [begin, begin + length) meets: the first one or the last one.
  std::optional<Span> FirstConflict(Ns begin, Ns length) const;
  std::optional<Span> LastConflict(Ns begin, Ns length) const;
  void Insert(Span span);

  const Ns period_;
  std::vector<Span> busy_;  // disjoint, ascending, within [0, period_)
};

}  // namespace thimble::schedule
