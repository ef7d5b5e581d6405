// Hands out sub-ranges of [0, capacity), lowest first, and takes them back. Pure bookkeeping. It
// serves address windows inside one reservation, and chunks inside the host driver's file, where
// consecutive ranges should be neighbours.
//
// Invariants (CheckInvariants() proves them):
//   G1  Free ranges are not empty, do not touch each other, and lie in [0, capacity).
//   G2  Every byte is either free or taken.
//
// Not thread-safe. Take() costs one step per free range that lies lower and is too small.
#pragma once

#include <map>
#include <optional>

#include "allocator/base/bytes.h"

namespace thimble {

class RangePool {
 public:
  explicit RangePool(Bytes capacity);

  // Takes the lowest free range of `bytes` (positive); nullopt if there is none.
  std::optional<Bytes> Take(Bytes bytes);

  // Returns [begin, begin + bytes), which was taken before, perhaps as part of a larger range.
  void Give(Bytes begin, Bytes bytes);

  Bytes taken_bytes() const { return taken_bytes_; }
  void CheckInvariants() const;  // O(free ranges)

 private:
  const Bytes capacity_;
  std::map<Bytes, Bytes> free_;  // begin -> end
  Bytes taken_bytes_ = 0;
};

}  // namespace thimble
