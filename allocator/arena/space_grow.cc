// The part of Space that takes memory from the driver and gives it back.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "allocator/arena/growth.h"
#include "allocator/arena/space.h"
#include "allocator/base/status_macros.h"

namespace thimble {

// How much must be appended so that `bytes` fit at the end of the home space.
Bytes Space::ContiguousShortfall(Bytes bytes, StreamTag tag) const {
  const BlockId last = heap_.last();
  const Bytes at_end = last != kNoBlock && heap_.UsableBy(last, tag) ? heap_.block(last).bytes : 0;
  return AlignUp(bytes - std::min(at_end, bytes), options_.chunk_bytes);
}

bool Space::GrowWithinSlack(Bytes bytes, StreamTag tag) {
  // Holes are refilled first, but for those a plan has left.
  if (heap_.held_bytes() == 0 && heap_.FirstVacant() != kNoBlock) return false;
  const Bytes growth = ContiguousShortfall(bytes, tag);
  const Bytes peak = std::max(used_peaks_.overall(), heap_.used_bytes() + plan_area_used_ + bytes);
  if (reserved() + growth > peak + AllowedSlack(peak, counts_.stitches - counts_.stitch_hits))
    return false;
  return TakeFromDriver(growth, tag, /*at_end=*/true).ok();
}

absl::Status Space::Grow(Bytes bytes) {
  return TakeFromDriver(bytes, kCleanTag, /*at_end=*/false).status();
}

// Backs vacant places first, lowest first, then appends; only the latter if `at_end`. All is for
// `tag`, whose free memory it may join. All or nothing (P4).
absl::StatusOr<Space::Growth> Space::TakeFromDriver(Bytes bytes, StreamTag tag, bool at_end) {
  if (bytes > ceiling() - home_->backed_bytes()) {
    return absl::ResourceExhaustedError(
        absl::StrCat(FormatBytes(bytes), " more would exceed the limit of ", FormatBytes(limit()),
                     "; ", FormatBytes(reserved()), " are reserved"));
  }
  Growth growth;
  absl::Status status;
  Bytes missing = bytes;
  while (status.ok() && missing > 0) {
    const BlockId vacant = at_end ? kNoBlock : heap_.FirstVacant();
    if (vacant == kNoBlock) {
      status = TakeFromDriverAt(heap_.end(), missing, tag, &growth);
      missing = 0;
    } else {
      const Bytes part = std::min(missing, heap_.block(vacant).bytes);
      status = TakeFromDriverAt(heap_.block(vacant).offset, part, tag, &growth);
      missing -= part;
    }
  }
  if (!status.ok()) {
    UndoGrowth(growth);
    return status;
  }
  reserved_peaks_.Raise(reserved());
  return growth;
}

absl::Status Space::TakeFromDriverAt(Bytes offset, Bytes bytes, StreamTag tag, Growth* growth) {
  const Bytes large = kLargeChunkSlots * options_.chunk_bytes;
  // Large chunks are harder to move.
  const Bytes in_large = options_.plan || options_.swap
                             ? 0
                             : InLargeChunks(bytes, reserved(), limit(), options_.chunk_bytes);
  const auto take = [&](Bytes part, Bytes chunk_bytes) -> absl::Status {
    if (part == 0) return absl::OkStatus();
    THIMBLE_RETURN_IF_ERROR(BackAt(offset, part, chunk_bytes, tag));
    growth->push_back({offset, offset + part});
    offset += part;
    return absl::OkStatus();
  };
  THIMBLE_RETURN_IF_ERROR(take(in_large, large));
  return take(bytes - in_large, options_.chunk_bytes);
}

absl::Status Space::BackAt(Bytes offset, Bytes bytes, Bytes chunk_bytes, StreamTag tag) {
  THIMBLE_RETURN_IF_ERROR(home_->Back(offset, bytes, chunk_bytes));
  AddBacked(offset, bytes, tag);
  return absl::OkStatus();
}

// There is memory at `offset` now, which nobody has used yet.
void Space::AddBacked(Bytes offset, Bytes bytes, StreamTag tag) {
  if (offset == heap_.end()) {
    heap_.Append(bytes, tag);
  } else {
    heap_.Refill({offset, offset + bytes}, tag);
  }
}

// Nobody has used these bytes yet. What the driver does not take back stays, as free memory: the
// chunk itself, or a mapping of it in an alias that was half built.
void Space::UndoGrowth(const Growth& growth) {
  for (auto extent = growth.rbegin(); extent != growth.rend(); ++extent) {
    for (Bytes end = extent->end; end > extent->begin;) {
      const ChunkId id = home_->ChunkAt(end - 1);
      const Extent chunk = {home_->chunk(id).offset, end};
      if (home_->chunk(id).aliases == 0 && home_->Vacate(id).ok()) heap_.Vacate(chunk);
      end = chunk.begin;
    }
  }
}

absl::Status Space::Trim(Bytes keep, Bytes* released) {
  Settle();
  *released = 0;
  const Bytes before = reserved();
  heap_.DrainSmall(kCleanTag);
  aliases_->RetryHalfDropped();
  home_->DestroySpares();
  if (reserved() > keep) stitcher_.DropIdle();
  absl::Status status;
  // From the end, so that the home space stays dense at its beginning.
  ForEachIdleChunk([&](ChunkId id, Extent chunk) {
    if (!status.ok() || reserved() <= keep) return false;
    status = home_->Vacate(id);
    if (status.ok()) heap_.Vacate(chunk);
    return status.ok();
  });
  *released = before - std::min(before, reserved());
  return status;
}

void Space::ReportMappings() {
  home_->ReportAll();
  aliases_->ReportAll();
}

void Space::DropIdle() {
  heap_.DrainSmall(kCleanTag);
  stitcher_.DropIdle();
}

}  // namespace thimble
