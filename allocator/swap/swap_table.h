// Knows which blocks may leave the device, which are in use now, and when they will be used again.
//
// A block may leave only if all its uses are announced. So it may leave once an op has announced a
// use (Touch), while no op pins it, and unless it was exposed to users that announce nothing
// (Expose).
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
  Address address;       // none: no block has this id
  AddressRange movable;  // the part that can leave
  void* host = nullptr;  // its copy on the host
  OpTime used_at;
  NextUse::Use use = NextUse::kUnknown;  // its last use
  StreamPoint used;                      // behind its last use; sequence 0: was not recorded
  std::uint32_t pins = 0;
  SwapId previous = kNoSwap;  // in the list of idle blocks, or of those on the host
  SwapId next = kNoSwap;
  SwapState state = SwapState::kOnDevice;
  bool touched = false;
  bool exposed = false;
  bool copying = false;  // a copy to the host is running: its device memory must stay
};

class SwapTable {
 public:
  // Adds a new block of `op`, which fills it. The block cannot leave before it is touched.
  void Add(Address address, AddressRange movable, std::uint64_t op, std::uint64_t step);
  // kNoSwap if no block begins at `address`.
  SwapId Find(Address address) const {
    const auto it = ids_.find(address);
    return it == ids_.end() ? kNoSwap : it->second;
  }
  const SwapBlock& block(SwapId id) const { return blocks_[id]; }
  // Whether the block can be read and written now.
  bool IsThere(SwapId id) const {
    return blocks_[id].state == SwapState::kOnDevice && !blocks_[id].copying;
  }
  // Whether the block may leave now: it is not in use, and all its uses are announced.
  bool IsIdle(SwapId id) const { return MayLeave(blocks_[id]); }
  // The block must be OnDevice, or its host memory was given back.
  void Remove(SwapId id);

  // Begins an op that pins `count` blocks. Returns the first of their uses for Pin().
  NextUse::Use BeginOp(std::uint64_t op, std::uint64_t step, std::size_t count) {
    return next_use_.BeginOp(op, step, static_cast<std::uint32_t>(count));
  }
  void Pin(SwapId id, NextUse::Use use);
  // Ends a pin of the block that had this address when it was pinned. If another block has the
  // address now, that one stays as it is. False if the block has no pins.
  bool Unpin(Address address) { return Unpin(address, std::nullopt); }
  // The same; the block was used before `used`.
  bool EndUse(Address address, const StreamPoint& used) { return Unpin(address, used); }
  // The block was used, last before `used`. It becomes the most recent.
  void Touch(SwapId id, const StreamPoint& used);
  void Expose(SwapId id);

  OpTime NextUseOf(SwapId id) const {
    return next_use_.Guess(blocks_[id].use, blocks_[id].used_at);
  }
  // The idle block with the latest next use; kNoSwap if there is none. O(idle blocks).
  SwapId FarthestNextUse() const;
  // The block on the host with the earliest next use; kNoSwap if there is none. O(blocks there).
  SwapId NearestNextUse() const;
  OpTime now() const { return next_use_.now(); }
  std::uint64_t TakeLongestGap() { return next_use_.TakeLongestGap(); }

  // Changes of state. The caller moves the bytes.
  void BeginEvict(SwapId id, void* host);
  void EndCopy(SwapId id);  // the copy to the host is complete, needed or not
  void EndEvict(SwapId id) { Move(id, SwapState::kOnHost); }
  void CancelEvict(SwapId id) { Move(id, SwapState::kOnDevice); }
  void BeginFetch(SwapId id) { Move(id, SwapState::kFetching); }
  void EndFetch(SwapId id) { Move(id, SwapState::kOnDevice); }
  void CancelFetch(SwapId id) { Move(id, SwapState::kOnHost); }

  Bytes on_host_bytes() const { return on_host_bytes_; }
  // Calls visit(block) for every block whose only copy is on the host (W2).
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

  bool Unpin(Address address, std::optional<StreamPoint> used);
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
