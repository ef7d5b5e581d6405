// Runs of addresses cut into blocks that are used, free or unmapped: the bookkeeping that the
// reimplemented pools share. Like the originals it links neighbours and orders free blocks by size,
// so that the peers' speed is realistic.
//
// Invariants:
//   L1  The blocks of a segment cover it without gap or overlap.
//   L2  Two neighbours that are both free or both unmapped do not exist.
//   L3  free_blocks() holds exactly the free blocks, unmapped_blocks() exactly the unmapped ones.
#pragma once

#include <deque>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "allocator/base/bytes.h"
#include "allocator/base/ids.h"

namespace thimble::bench {

enum class BlockState : std::uint8_t { kUsed, kFree, kUnmapped };

struct Block {
  Address address;
  Bytes bytes = 0;
  Block* prev = nullptr;  // in the same segment
  Block* next = nullptr;
  BlockState state = BlockState::kFree;

  Address end() const { return address + bytes; }
  bool is_whole_segment() const { return prev == nullptr && next == nullptr; }
};

class BlockList {
 public:
  struct BySize {
    bool operator()(const Block* a, const Block* b) const {
      return a->bytes != b->bytes ? a->bytes < b->bytes : a->address < b->address;
    }
  };
  using FreeBlocks = absl::btree_set<Block*, BySize>;
  using BlocksByAddress = absl::btree_map<Address, Block*>;

  BlockList() = default;
  BlockList(const BlockList&) = delete;
  BlockList& operator=(const BlockList&) = delete;

  // A new segment of one block. Segments never merge, even where their addresses touch.
  Block* AddSegment(Address address, Bytes bytes, BlockState state);

  // Forgets a segment; `block` is all of it.
  void RemoveSegment(Block* block);

  // The smallest free block of at least `bytes`, at the lowest address; free_blocks().end() if
  // none.
  FreeBlocks::const_iterator BestFit(Bytes bytes) const;

  // The block that starts at `address`; nullptr if none does.
  Block* Find(Address address) const;

  // The block that `address` lies in, which must exist.
  Block* Containing(Address address) const;

  // Gives [begin, end) of `block` a new state; the rest on either side keeps the old one. Returns
  // the block with the new state, which is larger than [begin, end) if neighbours had the same
  // state.
  Block* Carve(Block* block, Address begin, Address end, BlockState state);

  Block* Take(Block* block, Bytes bytes) {
    return Carve(block, block->address, block->address + bytes, BlockState::kUsed);
  }
  Block* Give(Block* block) {
    return Carve(block, block->address, block->end(), BlockState::kFree);
  }

  const FreeBlocks& free_blocks() const { return free_; }
  const BlocksByAddress& unmapped_blocks() const { return unmapped_; }

 private:
  Block* NewBlock(Address address, Bytes bytes, BlockState state);
  void DropBlock(Block* block);
  Block* Cut(Block* block, Bytes bytes);
  Block* MergeWithNeighbours(Block* block);
  void AddToIndex(Block* block);
  void RemoveFromIndex(Block* block);

  std::deque<Block> storage_;
  std::vector<Block*> spare_;
  BlocksByAddress blocks_;
  FreeBlocks free_;
  BlocksByAddress unmapped_;
};

}  // namespace thimble::bench
