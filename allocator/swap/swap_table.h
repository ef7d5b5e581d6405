// Which blocks may leave the device, who uses them now, and when they will be used again.
//
// A block is moved only if all its uses are announced. So it may leave once it was named after a
// use (Touch), as long as nobody pins it and nobody was given it to use unseen (Expose).
//
// Invariants (CheckInvariants() proves them, and those of swap_state.h that are about one block):
//   W4  The idle list holds exactly the blocks that are OnDevice, touched, not pinned, not exposed
//       and not being copied; the other list those that are OnHost.
//   W5  A block has a place on the host if and only if it is not OnDevice.
//   W6  on_host_bytes() is the sum over blocks that are OnHost or Fetching.
//
// Not thread-safe: the owning Arena holds its mutex (LockRank::kArena) around every call.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "allocator/base/bytes.h"
#include "allocator/base/ids.h"
#include "allocator/swap/next_use.h"
#include "allocator/swap/swap_state.h"

namespace thimble {

using SwapId = std::uint32_t;
inline constexpr SwapId kNoSwap = ~SwapId{0};

struct SwapBlock {
  Address address;       // none: no block has this id now
  AddressRange movable;  // the part that can leave
  void* host = nullptr;  // its bytes there
  OpTime used_at;
  NextUse::Use use = NextUse::kUnknown;  // its last one
  StreamId stream{};                     // of its last use
  std::uint32_t pins = 0;
  SwapId previous = kNoSwap;  // in the list of idle blocks, or of those on the host
  SwapId next = kNoSwap;
  SwapState state = SwapState::kOnDevice;
  bool touched = false;
  bool exposed = false;
  bool copying = false;  // to the host; it must stay where it is until that has ended
};

class SwapTable {
 public:
  // A new block of `op`, which fills it: it stays until it was touched.
  void Add(Address address, AddressRange movable, std::uint64_t op, std::uint64_t step);
  // kNoSwap for every other address.
  SwapId Find(Address address) const {
    const auto it = ids_.find(address);
    return it == ids_.end() ? kNoSwap : it->second;
  }
  const SwapBlock& block(SwapId id) const { return blocks_[id]; }
  // Whether it can be read and written now.
  bool IsThere(SwapId id) const {
    return blocks_[id].state == SwapState::kOnDevice && !blocks_[id].copying;
  }
  // Whether it may leave now: nobody uses it, and every use is announced.
  bool IsIdle(SwapId id) const { return MayLeave(blocks_[id]); }
  // It is OnDevice, or its place on the host was given back.
  void Remove(SwapId id);

  // An op begins that pins `count` blocks; the uses of Pin(), in the order of the blocks.
  NextUse::Use BeginOp(std::uint64_t op, std::uint64_t step, std::size_t count) {
    return next_use_.BeginOp(op, step, static_cast<std::uint32_t>(count));
  }
  void Pin(SwapId id, NextUse::Use use);
  // The end of a pin, of the block that was there when it was made. It may be gone since, and its
  // address another's: then that one is left alone. False if nobody has pinned it.
  bool Unpin(Address address) { return Unpin(address, std::nullopt); }
  // The same, and the block was used on `stream`.
  bool EndUse(Address address, StreamId stream) { return Unpin(address, stream); }
  // It was used, on `stream` last: the youngest now.
  void Touch(SwapId id, StreamId stream);
  void Expose(SwapId id);

  OpTime NextUseOf(SwapId id) const {
    return next_use_.Guess(blocks_[id].use, blocks_[id].used_at);
  }
  // The idle block that will be used again last; kNoSwap if there is none. O(idle blocks).
  SwapId FarthestNextUse() const;
  // The block on the host that will be used again first; kNoSwap if there is none. O(blocks there).
  SwapId NearestNextUse() const;
  OpTime now() const { return next_use_.now(); }
  std::uint64_t TakeLongestGap() { return next_use_.TakeLongestGap(); }

  // Next states. Whoever calls them moves the bytes.
  void BeginEvict(SwapId id, void* host);
  void EndCopy(SwapId id);  // the bytes are on the host, wanted there or not
  void EndEvict(SwapId id) { Move(id, SwapState::kOnHost); }
  void CancelEvict(SwapId id) { Move(id, SwapState::kOnDevice); }
  void BeginFetch(SwapId id) { Move(id, SwapState::kFetching); }
  void EndFetch(SwapId id) { Move(id, SwapState::kOnDevice); }
  void CancelFetch(SwapId id) { Move(id, SwapState::kOnHost); }

  Bytes on_host_bytes() const { return on_host_bytes_; }
  // visit(block) for every block of which the host has the only copy (W2).
  template <typename Visit>
  void ForEachOnHost(Visit visit) const {
    for (const SwapBlock& block : blocks_) {
      if (!block.address) continue;
      if (block.state == SwapState::kOnHost || block.state == SwapState::kFetching) visit(block);
    }
  }
  void CheckInvariants() const;  // O(blocks)

 private:
  static bool MayLeave(const SwapBlock& block) {
    return block.state == SwapState::kOnDevice && block.touched && !block.exposed &&
           block.pins == 0 && !block.copying;
  }
  struct List {
    SwapId first = kNoSwap;
    SwapId last = kNoSwap;
  };

  bool Unpin(Address address, std::optional<StreamId> used_on);
  void Move(SwapId id, SwapState to);
  void Link(SwapId id, List* list);
  void Unlink(SwapId id, List* list);
  void LinkIfIdle(SwapId id) {
    if (MayLeave(blocks_[id])) Link(id, &idle_);
  }
  void UnlinkIfIdle(SwapId id) {
    if (MayLeave(blocks_[id])) Unlink(id, &idle_);
  }

  NextUse next_use_;
  absl::flat_hash_map<Address, SwapId> ids_;
  std::vector<SwapBlock> blocks_;
  std::vector<SwapId> unused_;
  absl::flat_hash_map<Address, std::uint32_t> orphans_;  // pins of blocks that are gone
  List idle_;                                            // in the order of their last use
  List on_host_;                                         // in the order in which they left
  Bytes on_host_bytes_ = 0;
};

}  // namespace thimble
