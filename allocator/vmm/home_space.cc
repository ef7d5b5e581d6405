#include "allocator/vmm/home_space.h"

#include <algorithm>
#include <utility>

#include "allocator/base/check.h"
#include "allocator/base/status_macros.h"
#include "allocator/vmm/give_back.h"

namespace thimble {

absl::StatusOr<std::unique_ptr<HomeSpace>> HomeSpace::Create(Driver* driver, Bytes capacity,
                                                             Bytes slot_bytes) {
  const Bytes alignment = std::max(kAlignment, driver->properties().granularity);
  THIMBLE_ASSIGN_OR_RETURN(const Address base, driver->Reserve(capacity, alignment));
  return std::unique_ptr<HomeSpace>(new HomeSpace(driver, base, capacity, slot_bytes));
}

HomeSpace::HomeSpace(Driver* driver, Address base, Bytes capacity, Bytes slot_bytes)
    : driver_(driver),
      base_(base),
      capacity_(capacity),
      slot_bytes_(slot_bytes),
      slot_shift_(__builtin_ctzll(slot_bytes)) {}

HomeSpace::~HomeSpace() {
  const auto unmap_and_destroy = [&](Bytes offset, const Loose& loose) {
    GiveBack([&] { return driver_->Unmap(base_ + offset, loose.bytes); });
    GiveBack([&] { return driver_->Destroy(loose.handle); });
  };
  for (const Chunk& chunk : chunks_) {
    if (chunk.bytes != 0) unmap_and_destroy(chunk.offset, {chunk.handle, chunk.bytes});
  }
  for (const auto& [offset, loose] : stuck_) unmap_and_destroy(offset, loose);
  for (const Loose& loose : spares_) GiveBack([&] { return driver_->Destroy(loose.handle); });
  GiveBack([&] { return driver_->Release(base_, capacity_); });
}

absl::Status HomeSpace::Back(Bytes offset, Bytes bytes, Bytes chunk_bytes) {
  THIMBLE_RETURN_IF_ERROR(ClearStuck(offset, bytes));
  std::vector<ChunkHandle> mapped;
  absl::Status status = MapAll(offset, bytes, chunk_bytes, &mapped);
  if (status.ok()) status = driver_->SetAccess(base_ + offset, bytes);
  if (!status.ok()) {
    UndoMap(offset, chunk_bytes, mapped);
    return status;
  }
  for (std::size_t i = 0; i < mapped.size(); ++i) {
    Adopt(offset + i * chunk_bytes, chunk_bytes, mapped[i]);
  }
  if (IsHeard()) {
    ReportUnmapped();
    events_->Append({EventKind::kMap, (base_ + offset).value(), bytes, StreamId{}, chunk_bytes, 0});
  }
  return absl::OkStatus();
}

absl::Status HomeSpace::MapAll(Bytes offset, Bytes bytes, Bytes chunk_bytes,
                               std::vector<ChunkHandle>* mapped) {
  for (Bytes at = offset; at < offset + bytes; at += chunk_bytes) {
    THIMBLE_ASSIGN_OR_RETURN(const ChunkHandle handle, TakeHandle(chunk_bytes));
    const absl::Status status = driver_->Map(base_ + at, chunk_bytes, handle);
    if (!status.ok()) {
      RetireHandle({handle, chunk_bytes});
      return status;
    }
    mapped->push_back(handle);
  }
  return absl::OkStatus();
}

void HomeSpace::UndoMap(Bytes offset, Bytes chunk_bytes, const std::vector<ChunkHandle>& mapped) {
  for (std::size_t i = mapped.size(); i-- > 0;) {
    const Bytes at = offset + i * chunk_bytes;
    const Loose loose = {mapped[i], chunk_bytes};
    if (driver_->Unmap(base_ + at, chunk_bytes).ok()) {
      RetireHandle(loose);
    } else {
      stuck_.emplace(at, loose);
      spare_bytes_ += loose.bytes;
    }
  }
}

void HomeSpace::Adopt(Bytes offset, Bytes bytes, ChunkHandle handle) {
  ChunkId id = static_cast<ChunkId>(chunks_.size());
  if (unused_.empty()) {
    chunks_.emplace_back();
  } else {
    id = unused_.back();
    unused_.pop_back();
  }
  chunks_[id] = {offset, bytes, handle, /*aliases=*/0};
  const std::size_t first = offset / slot_bytes_;
  const std::size_t last = (offset + bytes) / slot_bytes_;
  if (slots_.size() < last) slots_.resize(last, kNoChunk);
  std::fill(slots_.begin() + first, slots_.begin() + last, id);
  backed_bytes_ += bytes;
}

absl::Status HomeSpace::Vacate(ChunkId id) {
  THIMBLE_ASSIGN_OR_RETURN(const Loose loose, Unplace(id));
  RetireHandle(loose);
  return absl::OkStatus();
}

absl::Status HomeSpace::Detach(ChunkId id) {
  THIMBLE_ASSIGN_OR_RETURN(const Loose loose, Unplace(id));
  KeepSpare(loose);
  return absl::OkStatus();
}

absl::StatusOr<HomeSpace::Loose> HomeSpace::Unplace(ChunkId id) {
  Chunk& chunk = chunks_[id];
  THIMBLE_CHECK(chunk.aliases == 0, "V2: a chunk with aliases cannot leave its place");
  THIMBLE_RETURN_IF_ERROR(driver_->Unmap(base_ + chunk.offset, chunk.bytes));
  const std::size_t first = chunk.offset / slot_bytes_;
  std::fill_n(slots_.begin() + first, chunk.bytes / slot_bytes_, kNoChunk);
  backed_bytes_ -= chunk.bytes;
  if (IsHeard()) NoteUnmapped(chunk.offset, chunk.bytes);
  const Loose loose = {chunk.handle, chunk.bytes};
  chunk = {};
  unused_.push_back(id);
  return loose;
}

absl::StatusOr<ChunkHandle> HomeSpace::TakeHandle(Bytes bytes) {
  for (Loose& spare : spares_) {
    if (spare.bytes != bytes) continue;
    const ChunkHandle handle = spare.handle;
    spare = spares_.back();
    spares_.pop_back();
    spare_bytes_ -= bytes;
    return handle;
  }
  return driver_->Create(bytes);
}

void HomeSpace::RetireHandle(Loose loose) {
  if (!driver_->Destroy(loose.handle).ok()) KeepSpare(loose);
}

void HomeSpace::KeepSpare(Loose loose) {
  spares_.push_back(loose);
  spare_bytes_ += loose.bytes;
}

void HomeSpace::DestroySpares() {
  ClearStuck(0, capacity_).IgnoreError();
  for (const Loose& loose : std::exchange(spares_, {})) {
    spare_bytes_ -= loose.bytes;
    RetireHandle(loose);
  }
}

absl::Status HomeSpace::ClearStuck(Bytes offset, Bytes bytes) {
  if (stuck_.empty()) return absl::OkStatus();
  // A stuck chunk may be larger than what is backed now and begin before it.
  for (auto it = stuck_.begin(); it != stuck_.end();) {
    const auto [at, loose] = *it;
    if (at >= offset + bytes || at + loose.bytes <= offset) {
      ++it;
      continue;
    }
    THIMBLE_RETURN_IF_ERROR(driver_->Unmap(base_ + at, loose.bytes));
    stuck_.erase(it++);
    spare_bytes_ -= loose.bytes;
    RetireHandle(loose);
  }
  return absl::OkStatus();
}

// --- Reports -------------------------------------------------------------------------------------

void HomeSpace::NoteUnmapped(Bytes offset, Bytes bytes) {
  const bool is_below = offset + bytes == unmapped_;
  if (!is_below && offset != unmapped_ + unmapped_bytes_) ReportUnmapped();
  if (unmapped_bytes_ == 0 || is_below) unmapped_ = offset;
  unmapped_bytes_ += bytes;
}

void HomeSpace::ReportUnmapped() {
  const Bytes bytes = std::exchange(unmapped_bytes_, 0);
  if (bytes == 0 || !IsHeard()) return;
  events_->Append({EventKind::kUnmap, (base_ + unmapped_).value(), bytes, StreamId{}, 0, 0});
}

void HomeSpace::ReportAll() {
  unmapped_bytes_ = 0;
  Event run = {EventKind::kMap, 0, 0, StreamId{}, 0, 0};
  for (std::size_t slot = 0; slot < slots_.size();) {
    if (slots_[slot] == kNoChunk) {
      ++slot;
      continue;
    }
    const Chunk& chunk = chunks_[slots_[slot]];
    slot += chunk.bytes / slot_bytes_;
    const std::uint64_t address = (base_ + chunk.offset).value();
    if (run.address + run.bytes != address || run.key != chunk.bytes) {
      if (run.bytes > 0) events_->Append(run);
      run.address = address;
      run.bytes = 0;
      run.key = chunk.bytes;
    }
    run.bytes += chunk.bytes;
  }
  if (run.bytes > 0) events_->Append(run);
}

void HomeSpace::CheckInvariants() const {
  Bytes backed = 0;
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    if (slots_[slot] == kNoChunk) continue;
    const Chunk& chunk = chunks_[slots_[slot]];
    const Bytes offset = slot * slot_bytes_;
    THIMBLE_CHECK(chunk.offset <= offset && offset < chunk.offset + chunk.bytes,
                  "V1: a slot names a chunk that is elsewhere");
    backed += slot_bytes_;
  }
  Bytes in_chunks = 0;
  for (const Chunk& chunk : chunks_) in_chunks += chunk.bytes;
  THIMBLE_CHECK(backed == in_chunks, "V2: a chunk does not cover all its slots");
  THIMBLE_CHECK(backed == backed_bytes_, "V3: backed_bytes is not the sum over chunks");
  Bytes spare = 0;
  for (const Loose& loose : spares_) spare += loose.bytes;
  for (const auto& [offset, loose] : stuck_) {
    THIMBLE_CHECK(ChunkAt(offset) == kNoChunk, "V1: a stuck place is not vacant");
    spare += loose.bytes;
  }
  THIMBLE_CHECK(spare == spare_bytes_, "V3: spare_bytes is not the sum over spares");
}

}  // namespace thimble
