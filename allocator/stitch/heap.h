// Who owns which byte of the home space. Free blocks are found by size (bins.h), merged with their
// neighbours the moment they are freed, and always split exactly. Pure bookkeeping: no driver.
//
// Invariants (CheckInvariants() proves them):
//   H1  Blocks tile [0, end()): no gap, no overlap, previous/next in order of offsets. So every
//       byte has exactly one owner, and no byte can be handed out twice.
//   H2  A free block is in the bin of its pool, tag and size, and no other block is in a bin.
//   H3  Two neighbouring free blocks differ in pool or tag; two neighbouring held or vacant ones do
//       not exist.
//   H4  The address index names the first block of every slot.
//   H5  free_bytes(), used_bytes(), held_bytes(), vacant_bytes() and empty_slab_bytes_ are the sums
//       over blocks.
//
// Small blocks (Pool::kSmall) and long-lived blocks (Pool::kLongLived) come from slabs: whole slots
// taken out of the large pool, to which they return as soon as they are empty. One empty slab of
// the small pool is kept, or all of them.
//
// Not thread-safe: the owning Arena holds its mutex (LockRank::kArena) around every call.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

#include "allocator/base/bytes.h"
#include "allocator/stitch/address_index.h"
#include "allocator/stitch/bins.h"
#include "allocator/stitch/block.h"
#include "allocator/vmm/alias_space.h"

namespace thimble {

class Heap {
 public:
  // A slab is one slot of the home space: a power of two.
  explicit Heap(Bytes slab_bytes);

  // --- Space -----------------------------------------------------------------------------------

  // [end(), end() + bytes) becomes free on every stream, or joins what is free on `tag` only.
  void Append(Bytes bytes, StreamTag tag);
  // The same for `part` of a vacant block.
  void Refill(Extent part, StreamTag tag);
  // `part` of one clean free block of the large pool becomes vacant.
  void Vacate(Extent part);
  // The lowest vacant block, or kNoBlock.
  BlockId FirstVacant() const { return vacant_.empty() ? kNoBlock : vacant_.begin()->second; }

  // Where the lowest vacant `bytes` begin; nothing if there are not so many in one place.
  std::optional<Bytes> FindVacant(Bytes bytes) const;

  // --- Blocks ----------------------------------------------------------------------------------

  // A free block of at least `bytes` that work on `tag` may use at once, or kNoBlock.
  BlockId FindFit(Pool pool, StreamTag tag, Bytes bytes) const;
  // Cuts `part` out of free block `id`; what is left stays free. Returns the block now in use.
  BlockId Take(BlockId id, Extent part);
  // The same for a part that need not lie in one free block; kNoBlock unless `tag` may use all of
  // it now.
  BlockId TakeAt(Extent part, StreamTag tag);
  // Like TakeAt(), but `part` is held until ReleaseHeld(), for all parts; false unless `tag` may
  // use all of it now.
  bool Hold(Extent part, StreamTag tag);
  void ReleaseHeld(StreamTag tag, Epoch epoch);
  // A block in use is free again, on stream `tag` at once, elsewhere when `epoch` has passed there.
  void Release(BlockId id, StreamTag tag, Epoch epoch);
  // What was freed on `tag` up to `passed` is free on every stream.
  void Clean(StreamTag tag, Epoch passed);
  // Whether anything freed on `tag` still waits to be cleaned.
  bool HasTagged(StreamTag tag) const {
    return tag < bins_.size() && std::any_of(bins_[tag]->begin(), bins_[tag]->end(),
                                             [](const Bins& bins) { return !bins.empty(); });
  }

  // --- Slabs -----------------------------------------------------------------------------------

  // Moves one slab from the large to the small pool; false if no free block holds a whole one.
  bool RefillSmall(StreamTag tag);
  // Makes the slot at `offset`, which `tag` may use, a slab of small blocks.
  void MakeSlab(Bytes offset, StreamTag tag) {
    MoveSlabs(At(offset), {offset, offset + slab_bytes_}, Pool::kSmall, /*join=*/tag);
  }
  // When no free long-lived block has `bytes`: moves slabs there, the highest there are, and
  // returns the block that has now; kNoBlock if there are too few in a row.
  BlockId RefillResident(Bytes bytes, StreamTag tag);
  // Moves every empty slab back; clean ones may join what is free on `tag` only.
  void DrainSmall(StreamTag tag);
  // From now on, only DrainSmall() does that.
  void KeepSlabs() { keeps_slabs_ = true; }
  bool keeps_slabs() const { return keeps_slabs_; }

  // --- Looking ---------------------------------------------------------------------------------

  // The block that covers home byte `offset`; `offset` is below end().
  BlockId At(Bytes offset) const;
  bool UsableBy(BlockId id, StreamTag tag, Pool pool = Pool::kLarge) const {
    const Block& block = blocks_[id];
    return block.state == BlockState::kFree && block.pool == pool &&
           (block.tag == tag || block.tag == kCleanTag);
  }
  // Calls visit(block) for every free block of the large pool of at least `bytes` that `tag` may
  // use.
  template <typename Visit>
  void ForEachUsable(StreamTag tag, Bytes bytes, Visit visit) const {
    const auto visit_all = [&](BlockId id) {
      visit(blocks_[id]);
      return true;
    };
    bins(Pool::kLarge, kCleanTag).ForEach(blocks_, bytes, visit_all);
    if (tag != kCleanTag && tag < bins_.size()) {
      bins(Pool::kLarge, tag).ForEach(blocks_, bytes, visit_all);
    }
  }

  Block& block(BlockId id) { return blocks_[id]; }
  const Block& block(BlockId id) const { return blocks_[id]; }
  BlockId first() const { return first_; }
  BlockId last() const { return last_; }
  Bytes end() const { return last_ == kNoBlock ? 0 : EndOf(last_); }
  Bytes EndOf(BlockId id) const { return blocks_[id].offset + blocks_[id].bytes; }

  Bytes used_bytes() const { return used_bytes_; }
  Bytes held_bytes() const { return held_bytes_; }
  Bytes vacant_bytes() const { return vacant_bytes_; }
  Bytes free_bytes(Pool pool) const { return free_bytes_[static_cast<int>(pool)]; }
  Bytes free_bytes() const {
    return std::accumulate(free_bytes_.begin(), free_bytes_.end(), Bytes{0});
  }
  // The largest free block, whoever may use it.
  Bytes LargestFree() const;

  void CheckInvariants() const;  // O(blocks)

 private:
  using PoolBins = std::array<Bins, kPools>;

  Bins& bins(Pool pool, StreamTag tag) { return (*bins_[tag])[static_cast<int>(pool)]; }
  const Bins& bins(Pool pool, StreamTag tag) const { return (*bins_[tag])[static_cast<int>(pool)]; }
  void KnowTag(StreamTag tag);

  BlockId NewRecord();
  BlockId AppendBlock(Bytes bytes);
  BlockId Split(BlockId id, Bytes at);
  void Absorb(BlockId left, BlockId right);
  template <typename Remove>
  BlockId AbsorbNeighbours(BlockId id, BlockState state, Remove remove);
  BlockId MergeFree(BlockId id, StreamTag join);
  void InsertFree(BlockId id);
  void RemoveFree(BlockId id);
  BlockId MakeFree(BlockId id, StreamTag tag, Epoch epoch, StreamTag join);
  void InsertVacant(BlockId id);
  void RemoveVacant(BlockId id);

  Extent WholeSlabs(const Block& block) const {
    const Bytes begin = AlignUp(block.offset, slab_bytes_);
    const Bytes end = AlignDown(block.offset + block.bytes, slab_bytes_);
    return {begin, std::max(begin, end)};
  }
  BlockId MoveSlabs(BlockId id, Extent slabs, Pool pool, StreamTag join);
  void ReturnSlabs(BlockId id, Bytes keep, StreamTag join);

  void CheckBins() const;

  const Bytes slab_bytes_;
  std::vector<Block> blocks_;
  std::vector<BlockId> unused_;
  BlockId first_ = kNoBlock;
  BlockId last_ = kNoBlock;
  AddressIndex index_;
  std::vector<std::unique_ptr<PoolBins>> bins_;  // by tag
  std::map<Bytes, BlockId> vacant_;              // by offset
  Bytes used_bytes_ = 0;
  Bytes held_bytes_ = 0;
  Bytes vacant_bytes_ = 0;
  std::array<Bytes, kPools> free_bytes_{};
  Bytes empty_slab_bytes_ = 0;  // whole slabs inside free blocks of the small pool
  bool keeps_slabs_ = false;
};

}  // namespace thimble
