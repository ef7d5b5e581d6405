// From the address a caller holds to the block behind it. Open addressing with linear probing;
// deletion shifts back, so there are no tombstones and a long run never slows down.
//
// Keys are addresses divided by kUnit and never zero.
#pragma once

#include <cstdint>
#include <vector>

#include "allocator/base/ids.h"
#include "allocator/stitch/block.h"

namespace thimble {

class PointerMap {
 public:
  PointerMap() : entries_(kInitialEntries) {}

  // `address` is a multiple of kUnit and not in the map.
  void Put(Address address, BlockId block) {
    if (2 * (size_ + 1) > entries_.size()) Grow();
    Insert({address.value() / kUnit, block});
    ++size_;
  }

  // kNoBlock if `address` is not in the map.
  BlockId Find(Address address) const {
    if (address % kUnit != 0) return kNoBlock;
    const std::size_t at = Locate(address.value() / kUnit);
    return entries_[at].key == 0 ? kNoBlock : entries_[at].block;
  }

  // Like Find, and takes it out.
  BlockId Take(Address address) {
    if (address % kUnit != 0) return kNoBlock;
    std::size_t hole = Locate(address.value() / kUnit);
    if (entries_[hole].key == 0) return kNoBlock;
    const BlockId block = entries_[hole].block;
    // Pull later entries of the same probe run into the hole, so that no search stops short.
    for (std::size_t at = Next(hole); entries_[at].key != 0; at = Next(at)) {
      const std::size_t wanted = Slot(entries_[at].key);
      if (((at - wanted) & mask()) < ((at - hole) & mask())) continue;
      entries_[hole] = entries_[at];
      hole = at;
    }
    entries_[hole] = {};
    --size_;
    return block;
  }

  std::size_t size() const { return size_; }

  // Calls visit(address, block) for every entry, in no order.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (const Entry& entry : entries_) {
      if (entry.key != 0) visit(Address(entry.key * kUnit), entry.block);
    }
  }

 private:
  struct Entry {
    std::uint64_t key = 0;
    BlockId block = kNoBlock;
  };
  static constexpr std::size_t kInitialEntries = 4096;

  std::size_t mask() const { return entries_.size() - 1; }
  std::size_t Next(std::size_t at) const { return (at + 1) & mask(); }
  // Fibonacci hashing; the middle bits are the best mixed ones.
  std::size_t Slot(std::uint64_t key) const { return ((key * 0x9E3779B97F4A7C15u) >> 20) & mask(); }
  std::size_t Locate(std::uint64_t key) const {
    std::size_t at = Slot(key);
    while (entries_[at].key != 0 && entries_[at].key != key) at = Next(at);
    return at;
  }
  void Insert(Entry entry) { entries_[Locate(entry.key)] = entry; }
  void Grow() {
    std::vector<Entry> old(entries_.size() * 2);
    old.swap(entries_);
    for (const Entry& entry : old) {
      if (entry.key != 0) Insert(entry);
    }
  }

  std::vector<Entry> entries_;  // a power of two, at most half full
  std::size_t size_ = 0;
};

}  // namespace thimble
