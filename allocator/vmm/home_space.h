// The home space: one reserved range in which every chunk is mapped once, at a place of its own.
//
//   base                                                            base + capacity
//    |  chunk 0  |  chunk 1  |   vacant   |  chunk 3 (large)  | ...     |
//    0                                                        end()
//
// Offsets from `base` name physical bytes for everything above: as long as a chunk is mapped, its
// offset is its identity. Vacant places keep their addresses; they can be backed again by any
// chunk.
//
// Invariants (CheckInvariants() proves them):
//   V1  Below end(), every slot names the chunk mapped there, or is vacant.
//   V2  A chunk covers whole slots, all of which name it.
//   V3  backed_bytes() is the sum over chunks; spare_bytes() the sum over spares and stuck places.
//   V4  A call that returns an error changes neither places nor backed_bytes().
//
// A *spare* is a chunk without a place, the first to be used again: one that was detached, or that
// the driver refused to destroy. A place that the driver refuses to unmap while a failed Back() is
// undone is *stuck*: it counts as vacant, and unmapping it is tried again before it is backed, or
// with DestroySpares(). So no driver error can lose a byte or hand one out twice.
//
// Reports where memory comes and goes (EventKind::kMap, kUnmap), neighbours that go together as
// one.
//
// Not thread-safe: the owning Arena holds its mutex (LockRank::kArena) around every call.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/base/bytes.h"
#include "allocator/base/event.h"
#include "allocator/driver/driver.h"

namespace thimble {

using ChunkId = std::uint32_t;
inline constexpr ChunkId kNoChunk = ~ChunkId{0};

struct Chunk {
  Bytes offset = 0;  // of its place in the home space
  Bytes bytes = 0;
  ChunkHandle handle{};
  std::uint32_t aliases = 0;  // further mappings of it, kept by AliasSpace
};

class HomeSpace {
 public:
  // Home addresses are aligned to this, so that a block can be aligned to anything up to it.
  static constexpr Bytes kAlignment = 2 * kMiB;

  // `driver` must outlive the space. `slot_bytes`, the size of the smallest chunk, is a power of
  // two and no less than the driver's granularity; `capacity` is a multiple of it.
  static absl::StatusOr<std::unique_ptr<HomeSpace>> Create(Driver* driver, Bytes capacity,
                                                           Bytes slot_bytes);

  // Gives all back to the driver; see give_back.h for what it refuses.
  ~HomeSpace();

  // Backs the vacant places [offset, offset + bytes) with chunks of `chunk_bytes` each, and grants
  // access with one call. All three are multiples of slot_bytes(); bytes of chunk_bytes.
  [[nodiscard]] absl::Status Back(Bytes offset, Bytes bytes, Bytes chunk_bytes);

  // Unmaps and destroys a chunk that has no aliases; its place becomes vacant. Nobody may use the
  // bytes any more, on any stream.
  [[nodiscard]] absl::Status Vacate(ChunkId id);

  // The same, but the chunk is not destroyed: it is a spare now.
  [[nodiscard]] absl::Status Detach(ChunkId id);

  // Gives all spares back, and tries again what the driver refused before.
  void DestroySpares();

  // From now on to `events`, which must outlive the space.
  void ReportTo(EventSink* events) { events_ = events; }
  // Reports what has gone and was not told yet.
  void ReportUnmapped();
  // Reports all that is mapped now.
  void ReportAll();

  // kNoChunk where `offset` is vacant or beyond end().
  ChunkId ChunkAt(Bytes offset) const {
    const std::size_t slot = offset >> slot_shift_;
    return slot < slots_.size() ? slots_[slot] : kNoChunk;
  }
  Chunk& chunk(ChunkId id) { return chunks_[id]; }
  const Chunk& chunk(ChunkId id) const { return chunks_[id]; }

  Driver& driver() const { return *driver_; }
  Address base() const { return base_; }
  Bytes capacity() const { return capacity_; }
  Bytes slot_bytes() const { return slot_bytes_; }
  Bytes end() const { return slots_.size() * slot_bytes_; }
  Bytes backed_bytes() const { return backed_bytes_; }
  Bytes spare_bytes() const { return spare_bytes_; }

  void CheckInvariants() const;  // O(slots)

 private:
  struct Loose {  // a handle without a place, or mapped at a place that is not its own any more
    ChunkHandle handle{};
    Bytes bytes = 0;
  };

  HomeSpace(Driver* driver, Address base, Bytes capacity, Bytes slot_bytes);

  absl::StatusOr<ChunkHandle> TakeHandle(Bytes bytes);
  void RetireHandle(Loose loose);
  void KeepSpare(Loose loose);
  absl::StatusOr<Loose> Unplace(ChunkId id);
  absl::Status ClearStuck(Bytes offset, Bytes bytes);
  absl::Status MapAll(Bytes offset, Bytes bytes, Bytes chunk_bytes,
                      std::vector<ChunkHandle>* mapped);
  void UndoMap(Bytes offset, Bytes chunk_bytes, const std::vector<ChunkHandle>& mapped);
  bool IsHeard() const { return events_ != nullptr && events_->enabled(); }
  void NoteUnmapped(Bytes offset, Bytes bytes);
  void Adopt(Bytes offset, Bytes bytes, ChunkHandle handle);

  Driver* const driver_;
  const Address base_;
  const Bytes capacity_;
  const Bytes slot_bytes_;
  const int slot_shift_;
  std::vector<ChunkId> slots_;
  std::vector<Chunk> chunks_;    // bytes == 0 marks an unused record
  std::vector<ChunkId> unused_;  // records of chunks_ to use again
  std::vector<Loose> spares_;
  absl::flat_hash_map<Bytes, Loose> stuck_;  // by offset
  Bytes backed_bytes_ = 0;
  Bytes spare_bytes_ = 0;
  EventSink* events_ = nullptr;
  Bytes unmapped_ = 0;  // offset of what is not reported yet
  Bytes unmapped_bytes_ = 0;
};

}  // namespace thimble
