// Cuts time into sections. A border lies only where a start follows an end, so that each section
// stands for one maximal set of buffers that are live together. Two lifetimes meet if and only if
// their spans do, and there are far fewer sections than points in time.
#pragma once

#include <cstdint>
#include <vector>

#include "allocator/plan/problem.h"

namespace thimble::plan {

// Sections [first, last).
struct Span {
  std::int32_t first = 0;
  std::int32_t last = 0;

  std::int32_t length() const { return last - first; }
  bool Meets(Span other) const { return first < other.last && other.first < last; }
};

class Sections {
 public:
  explicit Sections(const Problem& problem);

  std::int32_t count() const { return static_cast<std::int32_t>(loads_.size()); }
  const std::vector<Span>& spans() const { return spans_; }          // by buffer
  const std::vector<std::int64_t>& loads() const { return loads_; }  // live sizes, by section
  std::int64_t max_load() const;

  // By buffer: the largest load among its sections.
  std::vector<std::int64_t> PeakLoads() const;

 private:
  std::vector<Span> spans_;
  std::vector<std::int64_t> loads_;
};

}  // namespace thimble::plan
