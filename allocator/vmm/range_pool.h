// Hands out sub-ranges of [0, capacity), lowest first, and takes them back. Pure bookkeeping for
// address windows inside one reservation: no driver, no alignment beyond what the caller rounds to.
//
// Invariant: the free ranges are disjoint, none touches another, and all lie in [0, capacity).
#pragma once

#include <map>
#include <optional>

#include "allocator/base/bytes.h"

namespace thimble {

class RangePool {
 public:
  explicit RangePool(Bytes capacity);

  // The lowest free range of `bytes` (positive), or nothing.
  std::optional<Bytes> Take(Bytes bytes);

  // [begin, begin + bytes) was taken before, perhaps as part of a larger range.
  void Give(Bytes begin, Bytes bytes);

 private:
  std::map<Bytes, Bytes> free_;  // begin -> end
};

}  // namespace thimble
