#include "allocator/offline/plan/occupancy.h"

#include <algorithm>
#include <limits>

namespace thimble::plan {
namespace {

constexpr int kHolesCompared = 16;  // a tight hole far up is useless
constexpr std::int64_t kNoEnd = std::numeric_limits<std::int64_t>::max();

// Calls `inside` for every node of the canonical cover of `span`, and `above` for every node that
// the span covers in part: an ancestor of its first or last leaf.
template <typename Inside, typename Above>
void Walk(Span span, std::int32_t leaves, Inside inside, Above above) {
  const std::int32_t first = span.first + leaves;
  const std::int32_t last = span.last - 1 + leaves;
  for (std::int32_t left = first, right = last + 1; left < right; left /= 2, right /= 2) {
    if (left % 2 == 1) inside(left++);
    if (right % 2 == 1) inside(--right);
  }
  const auto is_part = [&](std::int32_t node, int height) {
    return node << height < first || ((node + 1) << height) - 1 > last;
  };
  for (int height = 1; (first >> height) != 0; ++height) {
    const std::int32_t left = first >> height;
    const std::int32_t right = last >> height;
    if (is_part(left, height)) above(left);
    if (right != left && is_part(right, height)) above(right);
  }
}

}  // namespace

Occupancy::Occupancy(std::int32_t sections) {
  while (leaves_ < sections) leaves_ *= 2;
  const std::size_t nodes = 2 * static_cast<std::size_t>(leaves_);
  touching_.resize(nodes);
  covering_.resize(nodes);
}

void Occupancy::Clear() {
  for (Ranges& ranges : touching_) ranges.clear();
  for (Ranges& ranges : covering_) ranges.clear();
}

void Occupancy::Merge(Ranges& ranges, std::int64_t begin, std::int64_t end) {
  const auto first =
      std::lower_bound(ranges.begin(), ranges.end(), begin,
                       [](const Range& range, std::int64_t at) { return range.end < at; });
  if (first == ranges.end() || first->begin > end) {
    ranges.insert(first, {begin, end});
    return;
  }
  auto last = first;
  for (; last != ranges.end() && last->begin <= end; ++last) end = std::max(end, last->end);
  *first = {std::min(begin, first->begin), end};
  ranges.erase(first + 1, last);
}

void Occupancy::Take(Span span, std::int64_t begin, std::int64_t end) {
  Walk(
      span, leaves_,
      [&](std::int32_t node) {
        Merge(touching_[node], begin, end);
        Merge(covering_[node], begin, end);
      },
      [&](std::int32_t node) { Merge(touching_[node], begin, end); });
}

void Occupancy::Look(Span span) {
  cursors_.clear();
  const auto add = [&](const Ranges& ranges) {
    if (!ranges.empty()) cursors_.push_back({ranges.data(), ranges.data() + ranges.size()});
  };
  Walk(
      span, leaves_, [&](std::int32_t node) { add(touching_[node]); },
      [&](std::int32_t node) { add(covering_[node]); });
}

// Visits the lists in turn until a whole round has not moved the offset.
std::int64_t Occupancy::NextFit(std::int64_t offset, std::int64_t size) {
  std::size_t content = 0;  // lists in a row without a range in [offset, offset + size)
  for (std::size_t k = 0; content < cursors_.size(); k = k + 1 < cursors_.size() ? k + 1 : 0) {
    Cursor& cursor = cursors_[k];
    if (cursor.next != cursor.end && cursor.next->end <= offset) {
      cursor.next =
          std::lower_bound(cursor.next + 1, cursor.end, offset,
                           [](const Range& range, std::int64_t at) { return range.end <= at; });
    }
    ++content;
    while (cursor.next != cursor.end && cursor.next->begin < offset + size) {
      offset = (cursor.next++)->end;
      content = 1;
    }
  }
  return offset;
}

std::int64_t Occupancy::HoleEnd() const {
  std::int64_t end = kNoEnd;
  for (const Cursor& cursor : cursors_) {
    if (cursor.next != cursor.end) end = std::min(end, cursor.next->begin);
  }
  return end;
}

std::int64_t Occupancy::FirstFit(Span span, std::int64_t size) {
  Look(span);
  return NextFit(0, size);
}

std::int64_t Occupancy::BestFit(Span span, std::int64_t size) {
  Look(span);
  std::int64_t best = kNoEnd;
  std::int64_t best_room = kNoEnd;
  std::int64_t end = 0;
  for (int hole = 0; hole < kHolesCompared; ++hole) {
    const std::int64_t offset = NextFit(end, size);
    end = HoleEnd();
    if (end == kNoEnd) return std::min(best, offset);
    if (end - offset < best_room) {
      best = offset;
      best_room = end - offset;
      if (best_room == size) break;
    }
  }
  return best;
}

}  // namespace thimble::plan
