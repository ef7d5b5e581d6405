#include "allocator/stitch/bins.h"

#include <algorithm>

namespace thimble {

Bytes Bins::LargestBytes(const Table& blocks) const {
  if (groups_ == 0) return 0;
  const int group = 31 - __builtin_clz(groups_);
  const int bin = (group << 5) | (31 - __builtin_clz(members_[group]));
  Bytes largest = 0;
  for (BlockId id = heads_[bin]; id != kNoBlock; id = blocks[id].bin_next) {
    largest = std::max(largest, blocks[id].bytes);
  }
  return largest;
}

}  // namespace thimble
