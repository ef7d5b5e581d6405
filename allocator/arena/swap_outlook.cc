// The part of Swapper that says what swapping would do for a request: for OomReport.
#include <algorithm>
#include <vector>

#include "allocator/arena/swapper.h"
#include "allocator/base/machine.h"

namespace thimble {

// What blocks come to once those that can leave begin at a chunk, as they do where blocks move.
struct Swapper::Weights {
  Bytes stays = 0;
  Bytes idle = 0;
  Bytes largest_idle = 0;
};

Swapper::Weights Swapper::Weigh() const {
  const Heap& heap = space_->heap();
  const Bytes chunk = space_->chunk_bytes();
  Weights weights;
  std::vector<bool> holds_small(heap.end() / chunk + 1);  // by slot
  space_->pointers().ForEach([&](Address address, BlockId first) {
    const Bytes bytes = space_->BytesOf(heap.block(first));
    const Bytes movable = space_->MovableBytes(bytes);
    const SwapId id = table_.Find(address);
    if (id != kNoSwap && (table_.IsIdle(id) || heap.block(first).absent)) {
      if (movable < bytes) weights.stays += chunk;
      if (heap.block(first).absent) return;
      weights.idle += movable;
      weights.largest_idle = std::max(weights.largest_idle, movable);
    } else if (id != kNoSwap) {
      weights.stays += AlignUp(bytes, chunk);
    } else {
      for (BlockId part = first; part != kNoBlock; part = heap.block(part).chain) {
        for (Bytes at = heap.block(part).offset; at < heap.EndOf(part); at += chunk) {
          holds_small[at / chunk] = true;
        }
        holds_small[(heap.EndOf(part) - 1) / chunk] = true;
      }
    }
  });
  weights.stays +=
      chunk * static_cast<Bytes>(std::count(holds_small.begin(), holds_small.end(), true));
  return weights;
}

// Of what host_limit allows, what the machine has.
Bytes Swapper::HostRoom() const {
  const Bytes taken = IsWatching() ? 0 : pool_->taken_bytes();
  const Bytes available = AvailableMemory();
  const Bytes left = available - std::min(available, HostPool::kLeftToOthers);
  return std::min(host_limit_ - taken, AlignDown(left, HostPool::kSegment));
}

SwapOutlook Swapper::Outlook(const Request& request) const {
  const Weights weights = Weigh();
  SwapOutlook outlook;
  outlook.on = !IsWatching();
  outlook.watched = true;
  outlook.stays = weights.stays;
  outlook.idle = weights.idle;
  outlook.host_room = HostRoom();
  if (outlook.on || request.bytes > space_->limit()) return outlook;
  Bytes ceiling = space_->limit();
  if (const auto info = space_->driver().GetMemoryInfo(); info.ok()) {
    ceiling = std::min(ceiling, space_->reserved() + info->free_bytes);
  }
  const Bytes needed = weights.stays + AlignUp(request.bytes, space_->chunk_bytes());
  if (needed > ceiling) return outlook;
  outlook.leaves = weights.idle - std::min(weights.idle, ceiling - needed);
  // Blocks leave whole: up to one more than has to.
  outlook.fits = outlook.leaves == 0 || outlook.leaves + weights.largest_idle <= outlook.host_room;
  return outlook;
}

}  // namespace thimble
