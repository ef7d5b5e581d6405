#include "allocator/swap/swap_table.h"

#include "allocator/base/check.h"

namespace thimble {
namespace {

bool IsOnHost(SwapState state) {
  return state == SwapState::kOnHost || state == SwapState::kFetching;
}

}  // namespace

void SwapTable::Add(Address address, AddressRange movable, std::uint64_t op, std::uint64_t step) {
  SwapId id = static_cast<SwapId>(blocks_.size());
  if (unused_.empty()) {
    blocks_.emplace_back();
  } else {
    id = unused_.back();
    unused_.pop_back();
  }
  blocks_[id].address = address;
  blocks_[id].movable = movable;
  // Its first use. The size is mixed in, to tell the blocks of one op apart.
  blocks_[id].use = next_use_.BeginOp(op == 0 ? 0 : op ^ movable.bytes(), step, /*count=*/1);
  blocks_[id].used_at = next_use_.now();
  ids_[address] = id;
}

void SwapTable::Remove(SwapId id) {
  const SwapBlock& block = blocks_[id];
  next_use_.Learn(block.use, block.used_at);
  UnlinkIfIdle(id);
  if (block.state == SwapState::kOnHost) Unlink(id, &on_host_);
  if (IsOnHost(block.state)) on_host_bytes_ -= block.movable.bytes();
  if (block.pins > 0) orphans_[block.address] += block.pins;
  ids_.erase(block.address);
  blocks_[id] = SwapBlock();
  unused_.push_back(id);
}

void SwapTable::Pin(SwapId id, NextUse::Use use) {
  UnlinkIfIdle(id);
  SwapBlock& block = blocks_[id];
  ++block.pins;
  if (block.used_at == next_use_.now()) return;  // this op has pinned it already
  next_use_.Learn(block.use, block.used_at);
  block.use = use;
  block.used_at = next_use_.now();
}

bool SwapTable::Unpin(Address address, std::optional<StreamPoint> used) {
  // Pins of a removed block end first. If this unpin was meant for its successor, the successor
  // stays pinned until the other unpin comes, which is safe.
  if (!orphans_.empty()) {
    if (const auto orphan = orphans_.find(address); orphan != orphans_.end()) {
      if (--orphan->second == 0) orphans_.erase(orphan);
      return true;
    }
  }
  const SwapId id = Find(address);
  if (id == kNoSwap) return true;
  SwapBlock& block = blocks_[id];
  if (block.pins == 0) return false;
  --block.pins;
  if (used.has_value()) {
    block.touched = true;
    block.used = *used;
  }
  LinkIfIdle(id);
  return true;
}

void SwapTable::Touch(SwapId id, const StreamPoint& used) {
  UnlinkIfIdle(id);
  blocks_[id].touched = true;
  blocks_[id].used = used;
  LinkIfIdle(id);
}

void SwapTable::Expose(SwapId id) {
  UnlinkIfIdle(id);
  blocks_[id].exposed = true;
}

// --- Order of use -------------------------------------------------------------------------------

SwapId SwapTable::FarthestNextUse() const {
  SwapId found = kNoSwap;
  OpTime last;
  for (SwapId id = idle_.first; id != kNoSwap; id = blocks_[id].next) {
    if (const OpTime next = NextUseOf(id); next > last) {
      last = next;
      found = id;
    }
  }
  return found;
}

SwapId SwapTable::NearestNextUse() const {
  SwapId found = kNoSwap;
  OpTime first(~std::uint64_t{0});
  for (SwapId id = on_host_.first; id != kNoSwap; id = blocks_[id].next) {
    if (const OpTime next = NextUseOf(id); next < first) {
      first = next;
      found = id;
    }
  }
  return found;
}

// --- States -------------------------------------------------------------------------------------

void SwapTable::BeginEvict(SwapId id, void* host) {
  Unlink(id, &idle_);
  Move(id, SwapState::kEvicting);
  blocks_[id].host = host;
  blocks_[id].copying = true;
}

void SwapTable::EndCopy(SwapId id) {
  blocks_[id].copying = false;
  LinkIfIdle(id);
}

void SwapTable::Move(SwapId id, SwapState to) {
  SwapBlock& block = blocks_[id];
  THIMBLE_CHECK(CanMove(block.state, to), "a block skipped a state");
  if (block.state == SwapState::kOnHost) Unlink(id, &on_host_);
  if (IsOnHost(to) && !IsOnHost(block.state)) on_host_bytes_ += block.movable.bytes();
  if (!IsOnHost(to) && IsOnHost(block.state)) on_host_bytes_ -= block.movable.bytes();
  block.state = to;
  if (to == SwapState::kOnHost) Link(id, &on_host_);
  if (to != SwapState::kOnDevice) return;
  block.host = nullptr;
  LinkIfIdle(id);
}

void SwapTable::Link(SwapId id, List* list) {
  blocks_[id].previous = list->last;
  (list->last == kNoSwap ? list->first : blocks_[list->last].next) = id;
  list->last = id;
}

void SwapTable::Unlink(SwapId id, List* list) {
  SwapBlock& block = blocks_[id];
  (block.previous == kNoSwap ? list->first : blocks_[block.previous].next) = block.next;
  (block.next == kNoSwap ? list->last : blocks_[block.next].previous) = block.previous;
  block.previous = block.next = kNoSwap;
}

void SwapTable::CheckInvariants() const {
  std::size_t linked = 0;
  for (SwapId id = idle_.first; id != kNoSwap; id = blocks_[id].next, ++linked) {
    THIMBLE_CHECK(MayLeave(blocks_[id]), "W4: a block in the idle list may not leave");
  }
  for (SwapId id = on_host_.first; id != kNoSwap; id = blocks_[id].next, ++linked) {
    THIMBLE_CHECK(blocks_[id].state == SwapState::kOnHost, "W4: a block is not on the host");
  }
  Bytes on_host = 0;
  for (const SwapBlock& block : blocks_) {
    if (!block.address) continue;
    if (MayLeave(block) || block.state == SwapState::kOnHost) --linked;
    THIMBLE_CHECK((block.host != nullptr) == (block.state != SwapState::kOnDevice),
                  "W5: a block has host memory that it does not need, or needs some and has none");
    THIMBLE_CHECK(block.pins == 0 || block.state != SwapState::kEvicting,
                  "W3: a pinned block is about to leave");
    if (IsOnHost(block.state)) on_host += block.movable.bytes();
  }
  THIMBLE_CHECK(linked == 0, "W4: a block is not in its list");
  THIMBLE_CHECK(on_host == on_host_bytes_, "W6: on_host_bytes is not the sum over blocks");
}

}  // namespace thimble
