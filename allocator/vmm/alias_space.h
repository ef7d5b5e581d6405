// Aliases: chunks that are not neighbours at home, mapped a second time side by side, so that a
// block can run through them. One reservation holds all of them; a dropped alias gives its
// addresses back.
//
//   home    | A | b | C | d | E |          b, d in use; A, C, E free
//   alias   | A | C | E |                  one contiguous window over three runs
//
// Invariants (CheckInvariants() proves them):
//   A1  A live alias maps, in order, exactly the chunks of its runs; each run is whole chunks.
//   A2  Chunk::aliases counts the mappings of the chunk here, those being dropped included.
//   A3  Windows of live and half-dropped aliases are disjoint.
//   A4  A Build() that fails leaves no alias. Mappings that the driver refuses to unmap, in Drop()
//       or while a failed Build() is undone, are kept aside with their addresses and tried again.
//
// Reports aliases that come and go (EventKind::kAlias, kUnalias).
//
// Not thread-safe: the owning Arena holds its mutex (LockRank::kArena) around every call.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "allocator/base/bytes.h"
#include "allocator/base/event.h"
#include "allocator/base/range_pool.h"
#include "allocator/driver/driver.h"
#include "allocator/vmm/home_space.h"

namespace thimble {

using AliasId = std::uint32_t;
inline constexpr AliasId kNoAlias = ~AliasId{0};

// Home bytes, by their offsets.
using Extent = Interval<Bytes>;

struct Alias {
  Bytes offset = 0;            // of its window in the alias reservation
  Bytes bytes = 0;             // 0 marks an unused record
  std::vector<Extent> runs;    // whole chunks, in the order of addresses
  std::uint32_t mappings = 0;  // chunks mapped; fewer than in runs only while it is dropped
};

class AliasSpace {
 public:
  static absl::StatusOr<std::unique_ptr<AliasSpace>> Create(HomeSpace* home, Bytes capacity);
  ~AliasSpace();

  // `runs` are extents of whole chunks. Map for each chunk, then SetAccess once.
  absl::StatusOr<AliasId> Build(absl::Span<const Extent> runs);

  // Nobody may use the window any more, on any stream. `id` is gone when this returns.
  void Drop(AliasId id);

  // Tries again to unmap what the driver refused before (A4).
  void RetryHalfDropped();

  // From now on to `events`, which must outlive the space.
  void ReportTo(EventSink* events) { events_ = events; }
  // Reports all that there are now.
  void ReportAll() const;

  const Alias& alias(AliasId id) const { return aliases_[id]; }
  Address address(AliasId id) const { return base_ + aliases_[id].offset; }
  AddressRange addresses() const { return {base_, base_ + capacity_}; }
  bool Contains(Address address) const { return address - base_ < capacity_; }

  std::uint64_t mappings() const { return mappings_; }  // of all aliases together

  void CheckInvariants() const;  // O(mappings)

 private:
  AliasSpace(HomeSpace* home, Address base, Bytes capacity);

  absl::Status MapRuns(Alias* alias);
  absl::Status UnmapRuns(Alias* alias);
  void Report(const Alias& alias) const;
  void Discard(Alias alias);
  AliasId NewRecord();

  HomeSpace* const home_;
  const Address base_;
  const Bytes capacity_;
  RangePool windows_;
  std::vector<Alias> aliases_;
  std::vector<AliasId> unused_;
  std::vector<Alias> half_dropped_;  // A4
  std::uint64_t mappings_ = 0;
  EventSink* events_ = nullptr;
};

}  // namespace thimble
