// Which bytes are taken in which sections: keeps ranges of bytes, each taken during a span of
// sections, and finds where the next one fits.
//
// A segment tree over the sections. Every node keeps two lists of disjoint byte ranges in rising
// order, neighbours merged:
//   O1  touching(v): the union of all ranges whose span meets a section of v.
//   O2  covering(v): the union of all ranges whose span has v in its canonical cover (the fewest
//       nodes that make up the span).
// A span is then free where neither touching() of its canonical cover nor covering() of the nodes
// above that has a range: O(log sections) lists, whose lengths are the number of holes, not of
// buffers. So a first-fit pass over 20,000 buffers takes milliseconds.
#pragma once

#include <cstdint>
#include <vector>

#include "allocator/offline/plan/sections.h"

namespace thimble::plan {

class Occupancy {
 public:
  explicit Occupancy(std::int32_t sections);

  void Clear();

  // Takes [begin, end) during `span`, in addition to earlier ranges.
  void Take(Span span, std::int64_t begin, std::int64_t end);

  // The lowest offset at which `size` bytes are free during all of `span`.
  std::int64_t FirstFit(Span span, std::int64_t size);

  // The lowest offset in the smallest of the lowest holes that are large enough; above all ranges
  // if no hole is.
  std::int64_t BestFit(Span span, std::int64_t size);

 private:
  struct Range {
    std::int64_t begin;
    std::int64_t end;
  };
  using Ranges = std::vector<Range>;
  struct Cursor {
    const Range* next;  // the first range that may matter
    const Range* end;
  };

  static void Merge(Ranges& ranges, std::int64_t begin, std::int64_t end);

  // Sets cursors_ to the start of every list that concerns `span`.
  void Look(Span span);
  // The lowest offset from `offset` on at which `size` bytes are free; moves the cursors there.
  std::int64_t NextFit(std::int64_t offset, std::int64_t size);
  // The end of the hole at the offset that NextFit() returned.
  std::int64_t HoleEnd() const;

  std::int32_t leaves_ = 1;  // a power of two; node v has the children 2v and 2v + 1
  std::vector<Ranges> touching_;
  std::vector<Ranges> covering_;
  std::vector<Cursor> cursors_;  // scratch
};

}  // namespace thimble::plan
