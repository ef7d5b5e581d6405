// Free blocks by size: 32 bins per power of two, found by two bitmaps in constant time.
//
// A bin's list is kept in ascending size as far as a bounded walk reaches: the walk stops after
// kWalk blocks, so that no operation depends on how many blocks are free. Order affects how tight a
// fit is, never whether there is one: FindFit takes any block of a higher bin if its own bin's walk
// found none.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "allocator/stitch/block.h"

namespace thimble {

class Bins {
 public:
  static constexpr int kBins = 1024;
  static constexpr int kWalk = 24;
  static constexpr Bytes kLargest = kUnit << 36;  // 16 TiB: sizes below it have a bin of their own

  Bins() { heads_.fill(kNoBlock); }

  // `blocks` is the table that ids index; it may move, so every call passes it.
  using Table = std::vector<Block>;

  void Insert(Table& blocks, BlockId id);
  void Remove(Table& blocks, BlockId id);

  // A block of at least `bytes`, as tight as the walk finds; kNoBlock if there is none.
  BlockId FindFit(const Table& blocks, Bytes bytes) const;

  bool empty() const { return groups_ == 0; }

  // Calls visit(id) for every block of at least `bytes` until it returns false. The visitor must
  // not change the bins.
  template <typename Visit>
  void ForEach(const Table& blocks, Bytes bytes, Visit visit) const {
    for (int bin = NextBin(BinOf(bytes)); bin >= 0; bin = NextBin(bin + 1)) {
      for (BlockId id = heads_[bin]; id != kNoBlock; id = blocks[id].bin_next) {
        if (blocks[id].bytes >= bytes && !visit(id)) return;
      }
    }
  }

  // The size of the largest free block, 0 if there is none. O(blocks in the highest bin).
  Bytes LargestBytes(const Table& blocks) const;

  static constexpr int BinOf(Bytes bytes) {
    const std::uint64_t units = bytes / kUnit;
    if (units < 32) return static_cast<int>(units);
    const int log = 63 - __builtin_clzll(units);
    return ((log - 4) << 5) | static_cast<int>((units >> (log - 5)) & 31);
  }

 private:
  // The first non-empty bin at or above `bin`, or -1.
  int NextBin(int bin) const {
    if (bin >= kBins) return -1;
    const int group = bin >> 5;
    const std::uint32_t rest = members_[group] & (~std::uint32_t{0} << (bin & 31));
    if (rest != 0) return (group << 5) | __builtin_ctz(rest);
    if (group == 31) return -1;
    const std::uint32_t above = groups_ & (~std::uint32_t{0} << (group + 1));
    if (above == 0) return -1;
    const int next = __builtin_ctz(above);
    return (next << 5) | __builtin_ctz(members_[next]);
  }

  std::uint32_t groups_ = 0;                         // bit g: members_[g] is not zero
  std::array<std::uint32_t, kBins / 32> members_{};  // bit b of group g: bin 32 g + b is not empty
  std::array<BlockId, kBins> heads_;
};

// On the path of every allocation, hence inline.

inline void Bins::Insert(Table& blocks, BlockId id) {
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

inline void Bins::Remove(Table& blocks, BlockId id) {
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

inline BlockId Bins::FindFit(const Table& blocks, Bytes bytes) const {
  const int bin = BinOf(bytes);
  BlockId id = heads_[bin];
  for (int step = 0; step < kWalk && id != kNoBlock; ++step) {
    if (blocks[id].bytes >= bytes) return id;
    id = blocks[id].bin_next;
  }
  const int higher = NextBin(bin + 1);
  return higher < 0 ? kNoBlock : heads_[higher];
}

}  // namespace thimble
