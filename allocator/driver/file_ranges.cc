#include "allocator/driver/file_ranges.h"

#include <iterator>

#include "allocator/base/check.h"

namespace thimble {

Bytes FileRanges::Take(Bytes bytes) {
  THIMBLE_CHECK(bytes > 0, "F1: an empty range was asked for");
  taken_bytes_ += bytes;
  for (auto range = free_.begin(); range != free_.end(); ++range) {
    if (range->second < bytes) continue;
    const auto [offset, size] = *range;
    const auto next = free_.erase(range);
    if (size > bytes) free_.emplace_hint(next, offset + bytes, size - bytes);
    return offset;
  }
  const Bytes offset = end_;
  end_ += bytes;
  return offset;
}

void FileRanges::Give(Bytes offset, Bytes bytes) {
  THIMBLE_CHECK(bytes > 0 && offset + bytes <= end_, "F2: a range was given that is not taken");
  auto next = free_.lower_bound(offset);
  THIMBLE_CHECK(next == free_.end() || next->first >= offset + bytes, "F2: given twice");
  taken_bytes_ -= bytes;
  if (next != free_.end() && next->first == offset + bytes) {
    bytes += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto previous = std::prev(next);
    THIMBLE_CHECK(previous->first + previous->second <= offset, "F2: given twice");
    if (previous->first + previous->second == offset) {
      offset = previous->first;
      bytes += previous->second;
      free_.erase(previous);
    }
  }
  if (offset + bytes == end_) {
    end_ = offset;
  } else {
    free_.emplace_hint(next, offset, bytes);
  }
}

void FileRanges::CheckInvariants() const {
  Bytes free_bytes = 0;
  Bytes previous_end = 0;
  for (const auto& [offset, bytes] : free_) {
    THIMBLE_CHECK(bytes > 0, "F1: an empty free range");
    THIMBLE_CHECK(offset > previous_end || free_bytes == 0, "F1: free ranges touch");
    previous_end = offset + bytes;
    THIMBLE_CHECK(previous_end < end_, "F1: a free range at the end");
    free_bytes += bytes;
  }
  THIMBLE_CHECK(free_bytes + taken_bytes_ == end_, "F2: bytes are neither free nor taken");
}

}  // namespace thimble
