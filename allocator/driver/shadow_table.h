// What CUDA would know about every address and chunk of the host driver. mmap accepts what cuda.h
// forbids; this table is what makes the host driver refuse it (rules R1-R8 of driver.h).
//
// Pure bookkeeping: no system call, no byte of memory touched. A function whose name begins with
// Check, and every function that returns an error, has changed nothing.
//
// The table also counts *areas*: the pieces into which the kernel cuts the reserved addresses
// (/proc/self/maps shows one line for each). Two neighbouring mappings share an area if their
// access is the same and their bytes are neighbours in the file; so do neighbouring vacant
// addresses.
//
// A fork freezes what is there: from then on a child may read those bytes of the file, so nobody
// writes to them any more. Frozen chunks are mapped privately; what is written goes into pages of
// the process. Two mappings of a frozen chunk do not show the same bytes, which only oracles in
// tests could tell: of a block in use, every byte is reached by one address.
//
// Invariants (CheckInvariants):
//   T1  Reservations do not overlap; every mapping lies inside one; mappings do not overlap.
//   T2  A file range is known if and only if a handle or a mapping refers to it, and its counts of
//       both are right (R7, R8).
//   T3  A mapping is exactly as large as its file range (R1).
//   T4  areas() is what a walk over all reservations counts. Until a fork, the kernel never has
//       more: it merges at least what is merged here.
//   T5  Every mapping of a frozen chunk is private.
//
// Not thread-safe: HostDriver holds its lock around every call.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/base/bytes.h"
#include "allocator/base/ids.h"

namespace thimble {

// Bytes of the host driver's file: what stands for physical memory.
struct FileRange {
  Bytes offset = 0;
  Bytes bytes = 0;
};

// Bytes of the file that nothing refers to any more.
struct DeadRange {
  FileRange file;
  bool frozen = false;  // but a child may
};

// How a part of the file is mapped.
struct Window {
  Address address;
  FileRange file;
  bool accessible = false;
  bool is_private = false;
};

class ShadowTable {
 public:
  explicit ShadowTable(Bytes granularity) : granularity_(granularity) {}

  // R5, for sizes of chunks and reservations.
  absl::Status CheckSize(Bytes bytes) const;

  // `range` is new and R5 holds: the caller has just got it from the kernel.
  void AddReservation(AddressRange range);
  absl::Status CheckRelease(AddressRange range) const;  // R6
  void RemoveReservation(Address address);              // after CheckRelease
  std::vector<AddressRange> Reservations() const;       // lowest first

  // Handles are never reused, so that a stale one is always noticed.
  ChunkHandle AddChunk(FileRange range);
  // A second handle for the same bytes, as an importer of an exported chunk holds (R8).
  absl::StatusOr<ChunkHandle> ShareChunk(ChunkHandle chunk);
  // The file range if this was the last reference to it (R7).
  absl::StatusOr<std::optional<DeadRange>> RemoveChunk(ChunkHandle chunk);

  // R1, R2, R5. Says how to map which part of the file.
  absl::StatusOr<Window> Map(AddressRange range, ChunkHandle chunk);
  absl::Status CheckUnmap(AddressRange range) const;  // R3
  // After CheckUnmap, or to take back Map. The file range if this was the last reference (R7).
  std::optional<DeadRange> Unmap(Address address);

  // All chunks are frozen from now on. Says which mappings become private by that, neighbours
  // joined.
  std::vector<Window> Freeze();
  // No child is left: chunks that are mapped nowhere are not frozen any more.
  void Thaw();
  bool has_frozen() const { return has_frozen_; }

  // R4: `range` is made of whole mappings. Says which parts had no access before.
  absl::StatusOr<std::vector<AddressRange>> GrantAccess(AddressRange range);
  void RevokeAccess(const std::vector<AddressRange>& granted);  // takes back GrantAccess

  // Where any bytes of the device are in the file, neighbours joined. kInvalidArgument unless all
  // are mapped and, if `need_access`, accessible.
  absl::StatusOr<std::vector<FileRange>> Translate(AddressRange range, bool need_access) const;

  std::uint64_t areas() const { return areas_; }
  void CheckInvariants() const;  // O(everything)

 private:
  struct Mapping {
    FileRange file;
    bool accessible = false;
    bool is_private = false;
  };
  struct References {
    Bytes bytes = 0;
    std::uint64_t handles = 0;
    std::uint64_t mappings = 0;
    bool frozen = false;
  };
  using Mappings = std::map<Address, Mapping>;

  // One side of a place: a mapping, vacant addresses (null), or the end of the reservation.
  struct Side {
    const Mapping* mapping = nullptr;
    bool outside = false;
  };
  struct Neighbours {
    Side left;
    Side right;
  };
  // How many areas begin between two sides: 0 or 1.
  static std::uint64_t Border(Side left, Side right);
  // How many begin at both ends of `middle`: all that one mapping can add or take away.
  static std::uint64_t Borders(const Neighbours& around, const Mapping* middle);

  // The reservation that holds all of `range`, or nothing.
  std::optional<AddressRange> ReservationOf(AddressRange range) const;
  // The first mapping that ends behind `address`.
  Mappings::const_iterator FirstBehind(Address address) const;
  // What touches `range` on both sides, where `next` is the first mapping behind it.
  Neighbours NeighboursOf(AddressRange range, AddressRange home,
                          Mappings::const_iterator next) const;
  absl::Status CheckAligned(AddressRange range) const;
  ChunkHandle AddHandle(Bytes offset);
  std::optional<DeadRange> ForgetIfDead(Bytes offset);
  std::uint64_t CountAreas() const;
  void SetAccessible(AddressRange range, bool accessible);

  const Bytes granularity_;
  std::map<Address, Bytes> reservations_;              // address -> bytes
  Mappings mappings_;                                  // by first address
  absl::flat_hash_map<ChunkHandle, Bytes> handles_;    // to file offsets; shared ones to the same
  absl::flat_hash_map<Bytes, References> references_;  // by file offset
  std::uint64_t last_handle_ = 0;
  std::uint64_t areas_ = 0;
  bool has_frozen_ = false;  // perhaps
};

}  // namespace thimble
