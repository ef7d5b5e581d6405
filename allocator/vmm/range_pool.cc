#include "allocator/vmm/range_pool.h"

#include <iterator>

#include "allocator/base/check.h"

namespace thimble {

RangePool::RangePool(Bytes capacity) {
  if (capacity > 0) free_.emplace(0, capacity);
}

std::optional<Bytes> RangePool::Take(Bytes bytes) {
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const auto [begin, end] = *it;
    if (end - begin < bytes) continue;
    free_.erase(it);
    if (begin + bytes < end) free_.emplace(begin + bytes, end);
    return begin;
  }
  return std::nullopt;
}

void RangePool::Give(Bytes begin, Bytes bytes) {
  Bytes end = begin + bytes;
  auto next = free_.lower_bound(begin);
  if (next != free_.end()) {
    THIMBLE_CHECK(end <= next->first, "a range was given back twice");
    if (next->first == end) {
      end = next->second;
      next = free_.erase(next);
    }
  }
  if (next != free_.begin()) {
    const auto previous = std::prev(next);
    THIMBLE_CHECK(previous->second <= begin, "a range was given back twice");
    if (previous->second == begin) {
      previous->second = end;
      return;
    }
  }
  free_.emplace(begin, end);
}

}  // namespace thimble
