#include "allocator/stitch/heap.h"

#include <algorithm>
#include <utility>

#include "allocator/base/check.h"

namespace thimble {

Heap::Heap(Bytes slab_bytes) : slab_bytes_(slab_bytes), index_(slab_bytes) { KnowTag(kCleanTag); }

void Heap::KnowTag(StreamTag tag) {
  while (bins_.size() <= tag) bins_.push_back(std::make_unique<PoolBins>());
}

// Functions marked inline are private to this file and on the path of every allocation or free.

// --- Records -----------------------------------------------------------------------------------

inline BlockId Heap::NewRecord() {
  if (unused_.empty()) {
    blocks_.emplace_back();
    return static_cast<BlockId>(blocks_.size() - 1);
  }
  const BlockId id = unused_.back();
  unused_.pop_back();
  blocks_[id] = {};
  return id;
}

BlockId Heap::AppendBlock(Bytes bytes) {
  const Bytes offset = end();
  const BlockId id = NewRecord();
  Block& block = blocks_[id];
  block.offset = offset;
  block.bytes = bytes;
  block.previous = last_;
  if (last_ == kNoBlock) {
    first_ = id;
  } else {
    blocks_[last_].next = id;
  }
  last_ = id;
  index_.Add(blocks_, id);
  return id;
}

// Returns the right part, which has the state of the left one; neither is in a bin.
inline BlockId Heap::Split(BlockId id, Bytes at) {
  const BlockId right_id = NewRecord();
  Block& left = blocks_[id];
  Block& right = blocks_[right_id];
  right.offset = at;
  right.bytes = left.offset + left.bytes - at;
  right.state = left.state;
  right.pool = left.pool;
  right.tag = left.tag;
  right.epoch = left.epoch;
  right.previous = id;
  right.next = left.next;
  left.bytes = at - left.offset;
  left.next = right_id;
  if (right.next == kNoBlock) {
    last_ = right_id;
  } else {
    blocks_[right.next].previous = right_id;
  }
  index_.Add(blocks_, right_id);
  return right_id;
}

// `right` follows `left` and is in no bin; it becomes part of `left`.
inline void Heap::Absorb(BlockId left_id, BlockId right_id) {
  index_.Remove(blocks_, right_id);
  Block& left = blocks_[left_id];
  Block& right = blocks_[right_id];
  left.bytes += right.bytes;
  left.next = right.next;
  if (right.next == kNoBlock) {
    last_ = left_id;
  } else {
    blocks_[right.next].previous = left_id;
  }
  right.state = BlockState::kUnused;
  unused_.push_back(right_id);
}

// `id` absorbs its neighbours in `state`, after remove(neighbour). Returns the block it is part of.
template <typename Remove>
BlockId Heap::AbsorbNeighbours(BlockId id, BlockState state, Remove remove) {
  const auto is_alike = [&](BlockId other) {
    return other != kNoBlock && blocks_[other].state == state;
  };
  if (const BlockId next = blocks_[id].next; is_alike(next)) {
    remove(next);
    Absorb(id, next);
  }
  if (const BlockId previous = blocks_[id].previous; is_alike(previous)) {
    remove(previous);
    Absorb(previous, id);
    id = previous;
  }
  return id;
}

// --- Free blocks -------------------------------------------------------------------------------

inline void Heap::InsertFree(BlockId id) {
  Block& block = blocks_[id];
  block.state = BlockState::kFree;
  bins(block.pool, block.tag).Insert(blocks_, id);
  free_bytes_[static_cast<int>(block.pool)] += block.bytes;
  if (block.pool == Pool::kSmall) empty_slab_bytes_ += WholeSlabs(block).bytes();
}

inline void Heap::RemoveFree(BlockId id) {
  const Block& block = blocks_[id];
  bins(block.pool, block.tag).Remove(blocks_, id);
  free_bytes_[static_cast<int>(block.pool)] -= block.bytes;
  if (block.pool == Pool::kSmall) empty_slab_bytes_ -= WholeSlabs(block).bytes();
}

// Merges `id`, which is in no bin, with free neighbours of the same pool and tag, also where one
// side is clean and the other has the tag `join`: the union then waits for that stream, which is
// safe. Returns the merged block, still in no bin.
inline BlockId Heap::MergeFree(BlockId id, StreamTag join) {
  const auto can_merge = [&](BlockId other) {
    if (other == kNoBlock) return false;
    const Block& a = blocks_[id];
    const Block& b = blocks_[other];
    return b.state == BlockState::kFree && b.pool == a.pool &&
           (b.tag == a.tag || (a.tag == kCleanTag && b.tag == join) ||
            (a.tag == join && b.tag == kCleanTag));
  };
  const auto adopt_tag = [&](BlockId other) {
    Block& a = blocks_[id];
    const Block& b = blocks_[other];
    if (a.tag == kCleanTag) {
      a.tag = b.tag;
      a.epoch = b.epoch;
    } else if (b.tag == a.tag) {
      a.epoch = std::max(a.epoch, b.epoch);
    }
  };
  // As long as it can: a clean neighbour that takes the tag may have a neighbour with that tag.
  for (BlockId next = blocks_[id].next; can_merge(next); next = blocks_[id].next) {
    RemoveFree(next);
    adopt_tag(next);
    Absorb(id, next);
  }
  for (BlockId previous = blocks_[id].previous; can_merge(previous);
       previous = blocks_[id].previous) {
    RemoveFree(previous);
    adopt_tag(previous);
    blocks_[previous].tag = blocks_[id].tag;
    blocks_[previous].epoch = blocks_[id].epoch;
    Absorb(previous, id);
    id = previous;
  }
  return id;
}

BlockId Heap::FindFit(Pool pool, StreamTag tag, Bytes bytes) const {
  const Bins& clean_bins = bins(pool, kCleanTag);
  if (tag == kCleanTag || tag >= bins_.size()) return clean_bins.FindFit(blocks_, bytes);
  const BlockId own = bins(pool, tag).FindFit(blocks_, bytes);
  if (clean_bins.empty()) return own;
  const BlockId clean = clean_bins.FindFit(blocks_, bytes);
  if (own == kNoBlock) return clean;
  if (clean == kNoBlock || blocks_[own].bytes <= blocks_[clean].bytes) return own;
  return clean;
}

BlockId Heap::Take(BlockId id, Extent part) {
  RemoveFree(id);
  if (blocks_[id].offset < part.begin) {
    const BlockId right = Split(id, part.begin);
    InsertFree(id);
    id = right;
  }
  if (part.end < EndOf(id)) InsertFree(Split(id, part.end));
  Block& block = blocks_[id];
  block.state = BlockState::kUsed;
  block.chain = kNoBlock;
  block.alias = kNoAlias;
  block.absent = false;
  used_bytes_ += block.bytes;
  return id;
}

std::optional<Bytes> Heap::FindVacant(Bytes bytes) const {
  for (const auto& [offset, id] : vacant_) {
    if (blocks_[id].bytes >= bytes) return offset;
  }
  return std::nullopt;
}

BlockId Heap::TakeAt(Extent part, StreamTag tag) {
  if (part.end > end()) return kNoBlock;
  BlockId id = At(part.begin);
  for (BlockId covered = id;; covered = blocks_[covered].next) {
    if (!UsableBy(covered, tag)) return kNoBlock;
    if (EndOf(covered) >= part.end) break;
  }
  if (EndOf(id) < part.end) {
    RemoveFree(id);
    id = MergeFree(id, /*join=*/tag);
    InsertFree(id);
  }
  return Take(id, part);
}

// `id` is in use or new. Returns the free block it became part of.
inline BlockId Heap::MakeFree(BlockId id, StreamTag tag, Epoch epoch, StreamTag join) {
  KnowTag(tag);
  blocks_[id].tag = tag;
  blocks_[id].epoch = epoch;
  blocks_[id].key = 0;
  id = MergeFree(id, join);
  InsertFree(id);
  return id;
}

void Heap::Release(BlockId id, StreamTag tag, Epoch epoch) {
  used_bytes_ -= blocks_[id].bytes;
  id = MakeFree(id, tag, epoch, /*join=*/tag);
  if (blocks_[id].pool == Pool::kSmall && empty_slab_bytes_ > slab_bytes_ && !keeps_slabs_) {
    ReturnSlabs(id, /*keep=*/slab_bytes_, /*join=*/tag);
  }
  if (blocks_[id].pool == Pool::kLongLived) {
    MoveSlabs(id, WholeSlabs(blocks_[id]), Pool::kLarge, /*join=*/tag);
  }
}

bool Heap::Hold(Extent part, StreamTag tag) {
  BlockId id = TakeAt(part, tag);
  if (id == kNoBlock) return false;
  used_bytes_ -= part.bytes();
  held_bytes_ += part.bytes();
  id = AbsorbNeighbours(id, BlockState::kHeld, [](BlockId) {});
  blocks_[id].state = BlockState::kHeld;
  return true;
}

void Heap::ReleaseHeld(StreamTag tag, Epoch epoch) {
  for (BlockId id = first_; id != kNoBlock; id = blocks_[id].next) {
    if (blocks_[id].state != BlockState::kHeld) continue;
    held_bytes_ -= blocks_[id].bytes;
    id = MakeFree(id, tag, epoch, /*join=*/tag);
  }
}

void Heap::Clean(StreamTag tag, Epoch passed) {
  if (tag >= bins_.size()) return;
  std::vector<BlockId> found;
  for (const Bins& bins : *bins_[tag]) {
    bins.ForEach(blocks_, 0, [&](BlockId id) {
      if (blocks_[id].epoch <= passed) found.push_back(id);
      return true;
    });
  }
  for (const BlockId id : found) {
    RemoveFree(id);
    blocks_[id].tag = kCleanTag;
    // Only with clean neighbours: joining a tagged one would undo the cleaning. A merge removes
    // only clean blocks from the table, and those are not in `found`, or this one itself.
    InsertFree(MergeFree(id, /*join=*/kCleanTag));
  }
}

// --- Slabs -------------------------------------------------------------------------------------

// Gives whole slabs of free small block `id` back to the large pool, but leaves `keep` bytes of
// empty slabs in the small pool altogether.
void Heap::ReturnSlabs(BlockId id, Bytes keep, StreamTag join) {
  Extent slabs = WholeSlabs(blocks_[id]);
  const Bytes elsewhere = empty_slab_bytes_ - slabs.bytes();
  if (elsewhere < keep) slabs.begin += keep - elsewhere;
  MoveSlabs(id, slabs, Pool::kLarge, join);
}

// `slabs` of free block `id` go to another pool. Returns the free block they are part of there.
BlockId Heap::MoveSlabs(BlockId id, Extent slabs, Pool pool, StreamTag join) {
  if (slabs.begin >= slabs.end) return id;
  id = Take(id, slabs);
  used_bytes_ -= slabs.bytes();
  Block& block = blocks_[id];
  block.pool = pool;
  // Not Release(): that would return slabs at once if an empty one waits for another stream.
  return MakeFree(id, block.tag, block.epoch, join);
}

bool Heap::RefillSmall(StreamTag tag) {
  BlockId found = kNoBlock;
  const auto has_slab = [&](BlockId id) {
    if (WholeSlabs(blocks_[id]).bytes() == 0) return true;
    found = id;
    return false;
  };
  if (tag < bins_.size()) bins(Pool::kLarge, tag).ForEach(blocks_, slab_bytes_, has_slab);
  if (found == kNoBlock) bins(Pool::kLarge, kCleanTag).ForEach(blocks_, slab_bytes_, has_slab);
  if (found == kNoBlock) return false;
  const Bytes begin = WholeSlabs(blocks_[found]).begin;
  MoveSlabs(found, {begin, begin + slab_bytes_}, Pool::kSmall, /*join=*/tag);
  return true;
}

BlockId Heap::RefillResident(Bytes bytes, StreamTag tag) {
  for (BlockId id = last_; id != kNoBlock; id = blocks_[id].previous) {
    if (!UsableBy(id, tag)) continue;
    // What follows may be the rest of an earlier slab, which these slabs will join.
    const BlockId next = blocks_[id].next;
    const bool joins = next != kNoBlock && UsableBy(next, tag, Pool::kLongLived);
    const Bytes wanted = AlignUp(bytes - (joins ? blocks_[next].bytes : 0), slab_bytes_);
    const Extent slabs = WholeSlabs(blocks_[id]);
    if (slabs.bytes() < wanted) continue;
    return MoveSlabs(id, {slabs.end - wanted, slabs.end}, Pool::kLongLived, /*join=*/tag);
  }
  return kNoBlock;
}

void Heap::DrainSmall(StreamTag tag) {
  if (empty_slab_bytes_ == 0) return;
  std::vector<BlockId> found;
  for (const auto& pools : bins_) {
    (*pools)[static_cast<int>(Pool::kSmall)].ForEach(blocks_, slab_bytes_, [&](BlockId id) {
      found.push_back(id);
      return true;
    });
  }
  // Returning the slabs of one block leaves the others where they are: pools do not merge.
  for (const BlockId id : found) ReturnSlabs(id, /*keep=*/0, /*join=*/tag);
}

// --- Space -------------------------------------------------------------------------------------

void Heap::Append(Bytes bytes, StreamTag tag) {
  MakeFree(AppendBlock(bytes), kCleanTag, Epoch(), /*join=*/tag);
}

void Heap::Refill(Extent part, StreamTag tag) {
  BlockId id = At(part.begin);
  THIMBLE_CHECK(blocks_[id].state == BlockState::kVacant && part.end <= EndOf(id),
                "H1: only vacant places can be refilled");
  RemoveVacant(id);
  if (blocks_[id].offset < part.begin) {
    const BlockId right = Split(id, part.begin);
    InsertVacant(id);
    id = right;
  }
  if (part.end < EndOf(id)) InsertVacant(Split(id, part.end));
  MakeFree(id, kCleanTag, Epoch(), /*join=*/tag);
}

void Heap::Vacate(Extent part) {
  BlockId id = Take(At(part.begin), part);
  used_bytes_ -= part.bytes();
  id = AbsorbNeighbours(id, BlockState::kVacant, [this](BlockId other) { RemoveVacant(other); });
  InsertVacant(id);
}

void Heap::InsertVacant(BlockId id) {
  Block& block = blocks_[id];
  block.state = BlockState::kVacant;
  block.pool = Pool::kLarge;
  vacant_.emplace(block.offset, id);
  vacant_bytes_ += block.bytes;
}

void Heap::RemoveVacant(BlockId id) {
  vacant_.erase(blocks_[id].offset);
  vacant_bytes_ -= blocks_[id].bytes;
}

// --- Looking -----------------------------------------------------------------------------------

BlockId Heap::At(Bytes offset) const {
  const Bytes boundary = AlignDown(offset, slab_bytes_);
  BlockId id = index_.FirstFrom(boundary);
  if (id == kNoBlock) return last_;
  if (blocks_[id].offset > offset) return blocks_[id].previous;
  while (EndOf(id) <= offset) id = blocks_[id].next;
  return id;
}

Bytes Heap::LargestFree() const {
  Bytes largest = 0;
  for (const auto& pools : bins_) {
    for (const Bins& bins : *pools) largest = std::max(largest, bins.LargestBytes(blocks_));
  }
  return largest;
}

}  // namespace thimble
