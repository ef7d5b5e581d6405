// From a home offset to the block that covers it: for every slot, the first block that begins in
// it. Kept up to date in constant time; asked when stitching, planning and trimming, never on the
// hot path.
//
// Invariant: first_[slot] is the lowest block that begins in the slot, or kNoBlock if none does.
#pragma once

#include <cstdint>
#include <vector>

#include "allocator/base/bytes.h"
#include "allocator/stitch/block.h"

namespace thimble {

class AddressIndex {
 public:
  // `slot_bytes` is a power of two.
  explicit AddressIndex(Bytes slot_bytes) : slot_shift_(__builtin_ctzll(slot_bytes)) {}

  // A block begins at `offset` from now on.
  void Add(const std::vector<Block>& blocks, BlockId id) {
    const std::size_t slot = blocks[id].offset >> slot_shift_;
    if (slot >= first_.size()) Grow(slot + 1);
    const BlockId current = first_[slot];
    if (current != kNoBlock && blocks[current].offset < blocks[id].offset) return;
    first_[slot] = id;
    occupied_[slot / 64] |= std::uint64_t{1} << (slot % 64);
  }

  // The block `id` goes; its neighbour links are still valid.
  void Remove(const std::vector<Block>& blocks, BlockId id) {
    const std::size_t slot = blocks[id].offset >> slot_shift_;
    if (first_[slot] != id) return;
    const BlockId next = blocks[id].next;
    if (next != kNoBlock && blocks[next].offset >> slot_shift_ == slot) {
      first_[slot] = next;
      return;
    }
    first_[slot] = kNoBlock;
    occupied_[slot / 64] &= ~(std::uint64_t{1} << (slot % 64));
  }

  // The lowest block that begins at or after slot boundary `offset`; kNoBlock if there is none.
  BlockId FirstFrom(Bytes offset) const {
    const std::size_t slot = offset >> slot_shift_;
    if (slot >= first_.size()) return kNoBlock;
    std::size_t word = slot / 64;
    std::uint64_t bits = occupied_[word] & (~std::uint64_t{0} << (slot % 64));
    while (bits == 0) {
      if (++word == occupied_.size()) return kNoBlock;
      bits = occupied_[word];
    }
    return first_[word * 64 + static_cast<std::size_t>(__builtin_ctzll(bits))];
  }

 private:
  void Grow(std::size_t slots) {
    first_.resize(slots, kNoBlock);
    occupied_.resize(slots / 64 + 1, 0);
  }

  const int slot_shift_;
  std::vector<BlockId> first_;
  std::vector<std::uint64_t> occupied_;  // bit s: first_[s] is a block
};

}  // namespace thimble
