#include "allocator/base/range_pool.h"

#include <iterator>

#include "allocator/base/check.h"

namespace thimble {

RangePool::RangePool(Bytes capacity) : capacity_(capacity) {
  if (capacity > 0) free_.emplace(0, capacity);
}

std::optional<Bytes> RangePool::Take(Bytes bytes) {
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const auto [begin, end] = *it;
    if (end - begin < bytes) continue;
    const auto next = free_.erase(it);
    if (begin + bytes < end) free_.emplace_hint(next, begin + bytes, end);
    taken_bytes_ += bytes;
    return begin;
  }
  return std::nullopt;
}

void RangePool::Give(Bytes begin, Bytes bytes) {
  Bytes end = begin + bytes;
  THIMBLE_CHECK(bytes > 0 && end <= capacity_, "G2: a range was given back that was never taken");
  auto next = free_.lower_bound(begin);
  THIMBLE_CHECK(next == free_.end() || end <= next->first, "G2: a range was given back twice");
  taken_bytes_ -= bytes;
  if (next != free_.end() && next->first == end) {
    end = next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto previous = std::prev(next);
    THIMBLE_CHECK(previous->second <= begin, "G2: a range was given back twice");
    if (previous->second == begin) {
      previous->second = end;
      return;
    }
  }
  free_.emplace_hint(next, begin, end);
}

void RangePool::CheckInvariants() const {
  Bytes free_bytes = 0;
  const std::pair<const Bytes, Bytes>* previous = nullptr;
  for (const auto& range : free_) {
    THIMBLE_CHECK(range.first < range.second && range.second <= capacity_, "G1: a bad free range");
    THIMBLE_CHECK(previous == nullptr || previous->second < range.first, "G1: free ranges touch");
    free_bytes += range.second - range.first;
    previous = &range;
  }
  THIMBLE_CHECK(free_bytes + taken_bytes_ == capacity_, "G2: bytes are neither free nor taken");
}

}  // namespace thimble
