#include "allocator/stitch/bins.h"

#include <algorithm>

namespace thimble {

void Bins::Insert(Table& blocks, BlockId id) {
  Block& block = blocks[id];
  const int bin = BinOf(block.bytes);
  BlockId after = heads_[bin];
  BlockId before = kNoBlock;
  for (int step = 0; step < kWalk && after != kNoBlock; ++step) {
    if (blocks[after].bytes >= block.bytes) break;  // equal sizes: the latest first, it is warm
    before = after;
    after = blocks[after].bin_next;
  }
  block.bin = static_cast<std::uint16_t>(bin);
  block.bin_previous = before;
  block.bin_next = after;
  if (after != kNoBlock) blocks[after].bin_previous = id;
  if (before != kNoBlock) {
    blocks[before].bin_next = id;
    return;
  }
  heads_[bin] = id;
  members_[bin >> 5] |= std::uint32_t{1} << (bin & 31);
  groups_ |= std::uint32_t{1} << (bin >> 5);
}

void Bins::Remove(Table& blocks, BlockId id) {
  const Block& block = blocks[id];
  if (block.bin_next != kNoBlock) blocks[block.bin_next].bin_previous = block.bin_previous;
  if (block.bin_previous != kNoBlock) {
    blocks[block.bin_previous].bin_next = block.bin_next;
    return;
  }
  heads_[block.bin] = block.bin_next;
  if (block.bin_next != kNoBlock) return;
  const int group = block.bin >> 5;
  members_[group] &= ~(std::uint32_t{1} << (block.bin & 31));
  if (members_[group] == 0) groups_ &= ~(std::uint32_t{1} << group);
}

BlockId Bins::FindFit(const Table& blocks, Bytes bytes) const {
  const int bin = BinOf(bytes);
  BlockId id = heads_[bin];
  for (int step = 0; step < kWalk && id != kNoBlock; ++step) {
    if (blocks[id].bytes >= bytes) return id;
    id = blocks[id].bin_next;
  }
  const int higher = NextBin(bin + 1);
  return higher < 0 ? kNoBlock : heads_[higher];
}

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
