#include "allocator/swap/swap_table.h"

#include "allocator/base/check.h"

namespace thimble {
namespace {

bool IsOnHost(SwapState state) {
  return state == SwapState::kOnHost || state == SwapState::kFetching;
}

}  // namespace

void SwapTable::Add(Address address, Extent movable, std::uint64_t op, std::uint64_t step) {
  SwapId id = static_cast<SwapId>(blocks_.size());
  if (unused_.empty()) {
    blocks_.emplace_back();
  } else {
    id = unused_.back();
    unused_.pop_back();
  }
  blocks_[id].address = address;
  blocks_[id].movable = movable;
  // Its first use. An op's blocks are told apart by their sizes as well.
  blocks_[id].use = next_use_.BeginOp(op == 0 ? 0 : op ^ movable.bytes(), step, /*count=*/1);
  blocks_[id].used_at = next_use_.now();
  ids_[address] = id;
}

void SwapTable::Remove(SwapId id) {
  next_use_.Learn(blocks_[id].use, blocks_[id].used_at);
  if (IsLinked(id)) Unlink(id);
  if (IsOnHost(blocks_[id].state)) on_host_bytes_ -= blocks_[id].movable.bytes();
  ids_.erase(blocks_[id].address);
  blocks_[id] = SwapBlock();
  unused_.push_back(id);
}

void SwapTable::Pin(SwapId id, NextUse::Use use) {
  SwapBlock& block = blocks_[id];
  if (IsLinked(id)) Unlink(id);
  ++block.pins;
  if (block.used_at == next_use_.now()) return;  // by this op already, as another of its blocks
  next_use_.Learn(block.use, block.used_at);
  block.use = use;
  block.used_at = next_use_.now();
}

SwapId SwapTable::LastUsed() const {
  SwapId found = kNoSwap;
  OpTime last = 0;
  for (SwapId id = first_; id != kNoSwap; id = blocks_[id].next) {
    if (const OpTime next = NextUseOf(id); next > last) {
      last = next;
      found = id;
    }
  }
  return found;
}

void SwapTable::Unpin(SwapId id) {
  THIMBLE_CHECK(blocks_[id].pins > 0, "a block is unpinned that nobody has pinned");
  --blocks_[id].pins;
  if (MayLeave(blocks_[id])) Link(id);
}

void SwapTable::Touch(SwapId id, StreamId stream) {
  if (IsLinked(id)) Unlink(id);
  blocks_[id].touched = true;
  blocks_[id].stream = stream;
  if (MayLeave(blocks_[id])) Link(id);
}

void SwapTable::Expose(SwapId id) {
  if (IsLinked(id)) Unlink(id);
  blocks_[id].exposed = true;
}

void SwapTable::BeginEvict(SwapId id, void* host) {
  Unlink(id);
  Move(id, SwapState::kEvicting);
  blocks_[id].host = host;
  blocks_[id].copying = true;
}

void SwapTable::EndCopy(SwapId id) {
  blocks_[id].copying = false;
  if (MayLeave(blocks_[id])) Link(id);
}

void SwapTable::Move(SwapId id, SwapState to) {
  SwapBlock& block = blocks_[id];
  THIMBLE_CHECK(CanMove(block.state, to), "a block skips a state on its way");
  if (IsOnHost(to) && !IsOnHost(block.state)) on_host_bytes_ += block.movable.bytes();
  if (!IsOnHost(to) && IsOnHost(block.state)) on_host_bytes_ -= block.movable.bytes();
  block.state = to;
  if (to != SwapState::kResident) return;
  block.host = nullptr;
  if (MayLeave(block)) Link(id);
}

void SwapTable::Link(SwapId id) {
  blocks_[id].previous = last_;
  (last_ == kNoSwap ? first_ : blocks_[last_].next) = id;
  last_ = id;
}

void SwapTable::Unlink(SwapId id) {
  SwapBlock& block = blocks_[id];
  (block.previous == kNoSwap ? first_ : blocks_[block.previous].next) = block.next;
  (block.next == kNoSwap ? last_ : blocks_[block.next].previous) = block.previous;
  block.previous = block.next = kNoSwap;
}

void SwapTable::CheckInvariants() const {
  std::size_t idle = 0;
  for (SwapId id = first_; id != kNoSwap; id = blocks_[id].next) {
    THIMBLE_CHECK(MayLeave(blocks_[id]), "W4: a block is idle that may not leave");
    ++idle;
  }
  Bytes on_host = 0;
  for (const SwapBlock& block : blocks_) {
    if (block.address == 0) continue;
    if (MayLeave(block)) --idle;
    THIMBLE_CHECK((block.host != nullptr) == (block.state != SwapState::kResident),
                  "W5: a place on the host without need, or none where one is needed");
    THIMBLE_CHECK(block.pins == 0 || block.state != SwapState::kEvicting,
                  "W3: a pinned block is about to leave");
    if (IsOnHost(block.state)) on_host += block.movable.bytes();
  }
  THIMBLE_CHECK(idle == 0, "W4: a block that may leave is not in the list");
  THIMBLE_CHECK(on_host == on_host_bytes_, "W6: on_host_bytes is not the sum over blocks");
}

}  // namespace thimble
