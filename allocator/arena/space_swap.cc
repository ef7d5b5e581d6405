// The part of Space whose blocks can be without memory while their bytes are elsewhere.
//
// Blocks of about a chunk and more begin at a chunk here, and are made of whole ones where that
// costs little, so that most of a block can leave. Pieces are not stitched but moved: chunks that
// are free leave their places and are mapped side by side at addresses that nobody uses. Addresses
// are plentiful, and every block keeps its own.
#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "allocator/arena/space.h"
#include "allocator/base/status_macros.h"

namespace thimble {

// --- Allocate ----------------------------------------------------------------------------------

void Space::MakeMovable(Request* request) const {
  const Bytes movable = MovableBytes(request->bytes);
  if (movable == 0) return;
  request->bytes = std::max(request->bytes, movable);
  request->alignment =
      std::max(request->alignment, std::min(options_.chunk_bytes, HomeSpace::kAlignment));
}

absl::StatusOr<Address> Space::GrowByMoving(const Request& request, StreamTag tag) {
  const Bytes bytes =
      AlignUp(request.alignment <= options_.chunk_bytes ? request.bytes : request.PaddedBytes(),
              options_.chunk_bytes);
  const Bytes offset = heap_.FindVacant(bytes).value_or(heap_.end());
  if (bytes > home_->capacity() - std::min(offset, home_->capacity())) {
    return absl::ResourceExhaustedError("no addresses are left in one piece");
  }
  THIMBLE_RETURN_IF_ERROR(BackByMoving(offset, bytes));
  AddBacked(offset, bytes, tag);
  reserved_peaks_.Raise(reserved());
  return TakeAt(AlignUp(offset, request.alignment), request, tag);
}

// From the driver while it has any and the limit allows it, else from chunks that are free
// elsewhere.
absl::Status Space::BackByMoving(Bytes offset, Bytes bytes) {
  CleanPassed();
  const Bytes allowed = ceiling() - home_->backed_bytes();
  if (bytes > allowed) DetachIdle(bytes - allowed);
  if (bytes > ceiling() - home_->backed_bytes()) {
    return absl::ResourceExhaustedError(
        absl::StrCat(FormatBytes(bytes), " more would exceed the limit of ", FormatBytes(limit()),
                     ", and too little is free"));
  }
  const absl::Status status = home_->Back(offset, bytes, options_.chunk_bytes);
  if (!absl::IsResourceExhausted(status)) return status;
  DetachIdle(bytes);
  return home_->Back(offset, bytes, options_.chunk_bytes);
}

// Up to `bytes` of chunks that are free become spares.
void Space::DetachIdle(Bytes bytes) {
  Bytes detached = 0;
  ForEachIdleChunk([&](ChunkId id, Extent chunk) {
    if (detached >= bytes || !home_->Detach(id).ok()) return false;
    heap_.Vacate(chunk);
    detached += chunk.bytes();
    return true;
  });
}

// --- Blocks without memory ---------------------------------------------------------------------

Extent Space::WholeChunksOf(const Block& block) const {
  const Bytes begin = AlignUp(block.offset, options_.chunk_bytes);
  return {begin, std::max(begin, AlignDown(block.offset + block.bytes, options_.chunk_bytes))};
}

AddressRange Space::MovableOf(Address address) const {
  const Block* const block = Find(address);
  if (block == nullptr) return {};
  const Extent chunks = WholeChunksOf(*block);
  if (chunks.bytes() == 0) return {};
  return {home_->base() + chunks.begin, home_->base() + chunks.end};
}

AddressRange Space::AddressesOf(Address address) const {
  const Block* const block = Find(address);
  if (block == nullptr || MovableBytes(BytesOf(*block)) == 0) return {};
  return {address, address + BytesOf(*block) - block->padding};
}

absl::Status Space::Evict(Address address) {
  Block& block = heap_.block(pointers_.Find(address));
  const Extent chunks = WholeChunksOf(block);
  absl::Status status;
  for (Bytes at = chunks.begin; at < chunks.end; at += options_.chunk_bytes) {
    status = home_->Detach(home_->ChunkAt(at));
    if (!status.ok()) break;
    block.absent = true;
    absent_bytes_ += options_.chunk_bytes;
  }
  return block.absent ? absl::OkStatus() : status;
}

// Chunks leave one by one, from the first on and until the driver refuses one, and come back all at
// once: what is absent is always at the beginning.
Extent Space::AbsentPartOf(const Block& block) const {
  const Extent chunks = WholeChunksOf(block);
  Bytes end = chunks.begin;
  while (end < chunks.end && home_->ChunkAt(end) == kNoChunk) end += options_.chunk_bytes;
  return {chunks.begin, end};
}

absl::Status Space::Fetch(Address address) {
  const BlockId id = pointers_.Find(address);
  if (!heap_.block(id).absent) return absl::OkStatus();  // a copy failed after the last fetch
  const Extent part = AbsentPartOf(heap_.block(id));
  THIMBLE_RETURN_IF_ERROR(BackByMoving(part.begin, part.bytes()));
  absent_bytes_ -= part.bytes();
  heap_.block(id).absent = false;
  used_peaks_.Raise(used());
  reserved_peaks_.Raise(reserved());
  return absl::OkStatus();
}

// Nobody uses what is left of it on any stream: it would not have been evicted.
void Space::FreeAbsent(BlockId id) {
  const Extent part = AbsentPartOf(heap_.block(id));
  heap_.Release(id, kCleanTag, Epoch());
  heap_.Vacate(part);
  absent_bytes_ -= part.bytes();
}

}  // namespace thimble
