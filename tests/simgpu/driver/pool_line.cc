#include "tests/simgpu/driver/pool_line.h"

#include <algorithm>
#include <iterator>

namespace simgpu {

bool PoolLine::Take(Bytes bytes, Bytes* offset) {
  auto best = free_.end();
  for (auto range = free_.begin(); range != free_.end(); ++range) {
    if (range->second < bytes) continue;
    if (best == free_.end() || range->second < best->second) best = range;
  }
  if (best == free_.end()) return false;
  const auto [begin, size] = *best;
  free_.erase(best);
  if (size > bytes) free_.emplace(begin + bytes, size - bytes);
  *offset = begin;
  return true;
}

void PoolLine::Give(Bytes offset, Bytes bytes) {
  auto next = free_.lower_bound(offset);
  if (next != free_.end() && offset + bytes == next->first) {
    bytes += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      before->second += bytes;
      return;
    }
  }
  free_.emplace(offset, bytes);
}

Bytes PoolLine::MissingAtEnd(Bytes bytes) const {
  if (free_.empty()) return bytes;
  const auto& [begin, size] = *free_.rbegin();
  return begin + size == end_ ? bytes - size : bytes;
}

void PoolLine::Grow(Bytes bytes) {
  while (bytes > 0) {
    const Bytes size = std::min(bytes, kSegment);
    segments_.emplace(end_, size);
    Give(end_, size);
    end_ += size;
    bytes -= size;
  }
}

Bytes PoolLine::Shrink(Bytes most) {
  Bytes given = 0;
  for (auto segment = segments_.end(); segment != segments_.begin();) {
    --segment;
    const auto [begin, size] = *segment;
    if (size > most - given) continue;
    auto range = free_.upper_bound(begin);
    if (range == free_.begin()) continue;
    --range;
    const auto [free_begin, free_size] = *range;
    if (begin + size > free_begin + free_size) continue;
    free_.erase(range);
    if (free_begin < begin) free_.emplace(free_begin, begin - free_begin);
    const Bytes behind = free_begin + free_size - (begin + size);
    if (behind > 0) free_.emplace(begin + size, behind);
    segment = segments_.erase(segment);
    given += size;
  }
  return given;
}

}  // namespace simgpu
