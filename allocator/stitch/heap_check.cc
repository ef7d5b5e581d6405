// The invariants of heap.h.
#include <array>
#include <cstddef>

#include "allocator/base/check.h"
#include "allocator/stitch/heap.h"

namespace thimble {

void Heap::CheckInvariants() const {
  Bytes at = 0;
  Bytes used = 0;
  std::array<Bytes, kPools> free{};
  Bytes held = 0;
  Bytes vacant = 0;
  Bytes empty_slab_bytes = 0;
  BlockId previous = kNoBlock;
  for (BlockId id = first_; id != kNoBlock; id = blocks_[id].next) {
    const Block& block = blocks_[id];
    THIMBLE_CHECK(block.offset == at && block.bytes > 0, "H1: blocks do not tile the home space");
    THIMBLE_CHECK(block.previous == previous, "H1: neighbours disagree");
    THIMBLE_CHECK(block.state != BlockState::kUnused, "H1: an unused record is in the list");
    THIMBLE_CHECK(At(at) == id, "H4: the address index misses a block");
    THIMBLE_CHECK(At(at + block.bytes - 1) == id, "H4: the address index misses a block's end");
    if (block.state == BlockState::kUsed) used += block.bytes;
    if (block.state == BlockState::kHeld) held += block.bytes;
    if (block.state == BlockState::kVacant) vacant += block.bytes;
    if (block.state == BlockState::kFree) {
      free[static_cast<int>(block.pool)] += block.bytes;
      if (block.pool == Pool::kSmall) empty_slab_bytes += WholeSlabs(block).bytes();
    }
    if (previous != kNoBlock && blocks_[previous].state == block.state) {
      THIMBLE_CHECK(block.state == BlockState::kUsed || (block.state == BlockState::kFree &&
                                                         (blocks_[previous].pool != block.pool ||
                                                          blocks_[previous].tag != block.tag)),
                    "H3: two neighbours should be one block");
    }
    at += block.bytes;
    previous = id;
  }
  THIMBLE_CHECK(previous == last_ && at == end(), "H1: the list does not end at last()");
  THIMBLE_CHECK(used == used_bytes_ && held == held_bytes_ && vacant == vacant_bytes_ &&
                    free == free_bytes_ && empty_slab_bytes == empty_slab_bytes_,
                "H5: a counter is not the sum over blocks");
  CheckBins();
}

void Heap::CheckBins() const {
  std::size_t listed = 0;
  for (std::size_t tag = 0; tag < bins_.size(); ++tag) {
    for (int pool = 0; pool < kPools; ++pool) {
      (*bins_[tag])[pool].ForEach(blocks_, 0, [&](BlockId id) {
        const Block& block = blocks_[id];
        THIMBLE_CHECK(block.state == BlockState::kFree && block.tag == tag &&
                          static_cast<int>(block.pool) == pool &&
                          block.bin == Bins::BinOf(block.bytes),
                      "H2: a bin holds a block that does not belong there");
        ++listed;
        return true;
      });
    }
  }
  std::size_t free_blocks = 0;
  for (BlockId id = first_; id != kNoBlock; id = blocks_[id].next) {
    if (blocks_[id].state == BlockState::kFree) ++free_blocks;
  }
  THIMBLE_CHECK(listed == free_blocks, "H2: a free block is in no bin");
}

}  // namespace thimble
