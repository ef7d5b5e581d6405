#include "tests/bench/block_list.h"

#include <iterator>

#include "allocator/base/check.h"

namespace thimble::bench {

Block* BlockList::AddSegment(Address address, Bytes bytes, BlockState state) {
  Block* block = NewBlock(address, bytes, state);
  AddToIndex(block);
  return block;
}

void BlockList::RemoveSegment(Block* block) {
  THIMBLE_CHECK(block->is_whole_segment(), "only a whole segment can be removed");
  RemoveFromIndex(block);
  DropBlock(block);
}

BlockList::FreeBlocks::const_iterator BlockList::BestFit(Bytes bytes) const {
  Block key;
  key.bytes = bytes;
  return free_.lower_bound(&key);
}

Block* BlockList::Find(Address address) const {
  const auto it = blocks_.find(address);
  return it == blocks_.end() ? nullptr : it->second;
}

Block* BlockList::Containing(Address address) const {
  return std::prev(blocks_.upper_bound(address))->second;
}

Block* BlockList::Carve(Block* block, Address begin, Address end, BlockState state) {
  RemoveFromIndex(block);
  if (begin > block->address) {
    Block* wanted = Cut(block, begin - block->address);
    AddToIndex(block);
    block = wanted;
  }
  if (end < block->end()) AddToIndex(Cut(block, end - block->address));
  block->state = state;
  if (state != BlockState::kUsed) block = MergeWithNeighbours(block);
  AddToIndex(block);
  return block;
}

Block* BlockList::NewBlock(Address address, Bytes bytes, BlockState state) {
  if (spare_.empty()) {
    spare_.push_back(&storage_.emplace_back());
  }
  Block* block = spare_.back();
  spare_.pop_back();
  *block = Block{address, bytes, nullptr, nullptr, state};
  blocks_.emplace(address, block);
  return block;
}

void BlockList::DropBlock(Block* block) {
  blocks_.erase(block->address);
  spare_.push_back(block);
}

// Shortens `block` to `bytes` and returns the rest; neither is in the index of its state.
Block* BlockList::Cut(Block* block, Bytes bytes) {
  Block* rest = NewBlock(block->address + bytes, block->bytes - bytes, block->state);
  rest->prev = block;
  rest->next = block->next;
  if (rest->next != nullptr) rest->next->prev = rest;
  block->next = rest;
  block->bytes = bytes;
  return rest;
}

Block* BlockList::MergeWithNeighbours(Block* block) {
  if (Block* prev = block->prev; prev != nullptr && prev->state == block->state) {
    RemoveFromIndex(prev);
    prev->bytes += block->bytes;
    prev->next = block->next;
    if (prev->next != nullptr) prev->next->prev = prev;
    DropBlock(block);
    block = prev;
  }
  if (Block* next = block->next; next != nullptr && next->state == block->state) {
    RemoveFromIndex(next);
    block->bytes += next->bytes;
    block->next = next->next;
    if (block->next != nullptr) block->next->prev = block;
    DropBlock(next);
  }
  return block;
}

void BlockList::AddToIndex(Block* block) {
  if (block->state == BlockState::kFree) free_.insert(block);
  if (block->state == BlockState::kUnmapped) unmapped_.emplace(block->address, block);
}

void BlockList::RemoveFromIndex(Block* block) {
  if (block->state == BlockState::kFree) free_.erase(block);
  if (block->state == BlockState::kUnmapped) unmapped_.erase(block->address);
}

}  // namespace thimble::bench
