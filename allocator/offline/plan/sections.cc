#include "allocator/offline/plan/sections.h"

#include <algorithm>

namespace thimble::plan {
namespace {

struct Event {
  std::int64_t time;
  bool is_start;  // ends sort first: lifetimes that end and start at the same time do not meet
  std::int32_t buffer;

  bool operator<(const Event& other) const {
    if (time != other.time) return time < other.time;
    if (is_start != other.is_start) return !is_start;
    return buffer < other.buffer;
  }
};

std::vector<Event> SortedEvents(const Problem& problem) {
  std::vector<Event> events;
  events.reserve(2 * problem.buffers.size());
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const std::int32_t buffer = static_cast<std::int32_t>(i);
    events.push_back({problem.buffers[i].lower, true, buffer});
    events.push_back({problem.buffers[i].upper, false, buffer});
  }
  std::sort(events.begin(), events.end());
  return events;
}

}  // namespace

Sections::Sections(const Problem& problem) : spans_(problem.buffers.size()) {
  std::int32_t section = 0;
  bool ended = false;  // a buffer ended since the last start
  for (const Event& event : SortedEvents(problem)) {
    Span& span = spans_[event.buffer];
    if (event.is_start) {
      if (ended) ++section;
      ended = false;
      span.first = section;
    } else {
      span.last = section + 1;
      ended = true;
    }
  }
  if (spans_.empty()) return;
  loads_.assign(section + 2, 0);
  for (std::size_t i = 0; i < spans_.size(); ++i) {
    loads_[spans_[i].first] += problem.buffers[i].size;
    loads_[spans_[i].last] -= problem.buffers[i].size;
  }
  for (std::size_t s = 1; s < loads_.size(); ++s) loads_[s] += loads_[s - 1];
  loads_.pop_back();  // after the last end no buffer is live
}

std::int64_t Sections::max_load() const {
  return loads_.empty() ? 0 : *std::max_element(loads_.begin(), loads_.end());
}

// A sparse table: row k holds the largest load of every 2^k sections. Two entries, which may
// overlap, cover any span.
std::vector<std::int64_t> Sections::PeakLoads() const {
  std::vector<std::vector<std::int64_t>> rows = {loads_};
  for (std::size_t width = 2; width <= loads_.size(); width *= 2) {
    const std::vector<std::int64_t>& half = rows.back();
    std::vector<std::int64_t> row(loads_.size() - width + 1);
    for (std::size_t s = 0; s < row.size(); ++s) row[s] = std::max(half[s], half[s + width / 2]);
    rows.push_back(std::move(row));
  }
  std::vector<std::int64_t> peaks;
  peaks.reserve(spans_.size());
  for (const Span span : spans_) {
    int k = 0;
    while ((2 << k) <= span.length()) ++k;
    peaks.push_back(std::max(rows[k][span.first], rows[k][span.last - (1 << k)]));
  }
  return peaks;
}

}  // namespace thimble::plan
