#include "allocator/driver/shadow_table.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/base/check.h"
#include "allocator/base/status_macros.h"

namespace thimble {
namespace {

std::string Name(AddressRange range) {
  return absl::StrCat("0x", absl::Hex(range.begin.value()), " + ", range.bytes(), " bytes");
}

template <typename... Parts>
absl::Status Broken(const char* rule, const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(rule, ": ", parts...));
}

absl::Status UnknownChunk(ChunkHandle chunk) {
  return absl::InvalidArgumentError(
      absl::StrCat("chunk ", static_cast<std::uint64_t>(chunk), " does not exist"));
}

// Appends, or extends the last element where the two are neighbours.
void Append(std::vector<FileRange>& ranges, FileRange next) {
  if (!ranges.empty() && ranges.back().offset + ranges.back().bytes == next.offset) {
    ranges.back().bytes += next.bytes;
  } else {
    ranges.push_back(next);
  }
}

}  // namespace

absl::Status ShadowTable::CheckSize(Bytes bytes) const {
  if (bytes > 0 && bytes % granularity_ == 0) return absl::OkStatus();
  return Broken("R5", bytes, " bytes are not a positive multiple of ", granularity_);
}

absl::Status ShadowTable::CheckAligned(AddressRange range) const {
  THIMBLE_RETURN_IF_ERROR(CheckSize(range.bytes()));
  if (range.begin % granularity_ == 0 && range.begin <= range.end) {
    return absl::OkStatus();
  }
  return Broken("R5", Name(range), " is not a range of whole granules of ", granularity_);
}

void ShadowTable::AddReservation(AddressRange range) {
  const auto next = reservations_.lower_bound(range.begin);
  THIMBLE_CHECK(next == reservations_.end() || range.end <= next->first, "T1: overlap");
  THIMBLE_CHECK(next == reservations_.begin() ||
                    std::prev(next)->first + std::prev(next)->second <= range.begin,
                "T1: overlap");
  reservations_.emplace_hint(next, range.begin, range.bytes());
  ++areas_;
}

absl::Status ShadowTable::CheckRelease(AddressRange range) const {
  const auto found = reservations_.find(range.begin);
  if (found == reservations_.end() || found->second != range.bytes()) {
    return Broken("R6", Name(range), " is not what Reserve gave");
  }
  const auto mapping = mappings_.lower_bound(range.begin);
  if (mapping != mappings_.end() && mapping->first < range.end) {
    return Broken("R6", Name(range), " still has a mapping at 0x",
                  absl::Hex(mapping->first.value()));
  }
  return absl::OkStatus();
}

void ShadowTable::RemoveReservation(Address address) {
  const bool removed = reservations_.erase(address) == 1;
  THIMBLE_CHECK(removed, "T1: unknown reservation");
  --areas_;
}

std::vector<AddressRange> ShadowTable::Reservations() const {
  std::vector<AddressRange> all;
  all.reserve(reservations_.size());
  for (const auto& [address, bytes] : reservations_) all.push_back({address, address + bytes});
  return all;
}

ChunkHandle ShadowTable::AddChunk(FileRange range) {
  const bool added = references_.try_emplace(range.offset, References{range.bytes, 1, 0}).second;
  THIMBLE_CHECK(added, "T2: the file range is already in use");
  return AddHandle(range.offset);
}

absl::StatusOr<ChunkHandle> ShadowTable::ShareChunk(ChunkHandle chunk) {
  const auto found = handles_.find(chunk);
  if (found == handles_.end()) return UnknownChunk(chunk);
  const Bytes offset = found->second;
  ++references_.at(offset).handles;
  return AddHandle(offset);
}

ChunkHandle ShadowTable::AddHandle(Bytes offset) {
  const ChunkHandle handle{++last_handle_};
  handles_.emplace(handle, offset);
  return handle;
}

absl::StatusOr<std::optional<DeadRange>> ShadowTable::RemoveChunk(ChunkHandle chunk) {
  const auto found = handles_.find(chunk);
  if (found == handles_.end()) return UnknownChunk(chunk);
  const Bytes offset = found->second;
  handles_.erase(found);
  --references_.at(offset).handles;
  return ForgetIfDead(offset);
}

std::optional<DeadRange> ShadowTable::ForgetIfDead(Bytes offset) {
  const auto found = references_.find(offset);
  if (found->second.handles + found->second.mappings > 0) return std::nullopt;
  const DeadRange dead{{offset, found->second.bytes}, found->second.frozen};
  references_.erase(found);
  return dead;
}

absl::StatusOr<Window> ShadowTable::Map(AddressRange range, ChunkHandle chunk) {
  THIMBLE_RETURN_IF_ERROR(CheckAligned(range));
  const auto found = handles_.find(chunk);
  if (found == handles_.end()) return UnknownChunk(chunk);
  References& references = references_.at(found->second);
  if (references.bytes != range.bytes()) {
    return Broken("R1", "a chunk of ", references.bytes, " bytes cannot be mapped as ",
                  range.bytes());
  }
  const std::optional<AddressRange> home = ReservationOf(range);
  if (!home) return Broken("R2", Name(range), " is not reserved");
  const auto next = FirstBehind(range.begin);
  if (next != mappings_.end() && next->first < range.end) {
    return Broken("R2", Name(range), " already has a mapping at 0x",
                  absl::Hex(next->first.value()));
  }
  const FileRange file{found->second, references.bytes};
  const Neighbours around = NeighboursOf(range, *home, next);
  const Mapping mapping{file, /*accessible=*/false, /*is_private=*/references.frozen};
  const auto added = mappings_.emplace_hint(next, range.begin, mapping);
  areas_ = areas_ - Borders(around, nullptr) + Borders(around, &added->second);
  ++references.mappings;
  return Window{range.begin, file, mapping.accessible, mapping.is_private};
}

absl::Status ShadowTable::CheckUnmap(AddressRange range) const {
  const auto found = mappings_.find(range.begin);
  if (found == mappings_.end()) return Broken("R3", "no mapping begins at ", Name(range));
  if (found->second.file.bytes != range.bytes()) {
    return Broken("R3", Name(range), " is not one whole mapping, which has ",
                  found->second.file.bytes, " bytes");
  }
  return absl::OkStatus();
}

std::optional<DeadRange> ShadowTable::Unmap(Address address) {
  const auto found = mappings_.find(address);
  THIMBLE_CHECK(found != mappings_.end(), "T1: unknown mapping");
  const FileRange file = found->second.file;
  const AddressRange range{address, address + file.bytes};
  const Neighbours around = NeighboursOf(range, *ReservationOf(range), std::next(found));
  areas_ = areas_ - Borders(around, &found->second) + Borders(around, nullptr);
  mappings_.erase(found);
  --references_.at(file.offset).mappings;
  return ForgetIfDead(file.offset);
}

std::vector<Window> ShadowTable::Freeze() {
  std::vector<Window> changed;
  for (auto& [offset, references] : references_) references.frozen = true;
  has_frozen_ = !references_.empty();
  for (auto& [address, mapping] : mappings_) {
    if (std::exchange(mapping.is_private, true)) continue;
    if (!changed.empty()) {
      Window& last = changed.back();
      if (last.address + last.file.bytes == address &&
          last.file.offset + last.file.bytes == mapping.file.offset &&
          last.accessible == mapping.accessible) {
        last.file.bytes += mapping.file.bytes;
        continue;
      }
    }
    changed.push_back({address, mapping.file, mapping.accessible, /*is_private=*/true});
  }
  areas_ = CountAreas();
  return changed;
}

void ShadowTable::Thaw() {
  has_frozen_ = false;
  for (auto& [offset, references] : references_) {
    references.frozen = references.frozen && references.mappings > 0;
    has_frozen_ = has_frozen_ || references.frozen;
  }
}

absl::StatusOr<std::vector<AddressRange>> ShadowTable::GrantAccess(AddressRange range) {
  THIMBLE_RETURN_IF_ERROR(CheckAligned(range));
  std::vector<AddressRange> granted;
  Address at = range.begin;
  for (auto next = mappings_.find(at); at < range.end; ++next) {
    if (next == mappings_.end() || next->first != at) {
      return Broken("R4", Name(range), " is not fully mapped: no mapping begins at 0x",
                    absl::Hex(at.value()));
    }
    const Bytes bytes = next->second.file.bytes;
    if (!next->second.accessible) granted.push_back({at, at + bytes});
    at += bytes;
  }
  if (at != range.end) return Broken("R4", Name(range), " ends inside a mapping");
  if (!ReservationOf(range)) return Broken("R4", Name(range), " spans two reservations");
  for (const AddressRange& one : granted) SetAccessible(one, true);
  return granted;
}

void ShadowTable::RevokeAccess(const std::vector<AddressRange>& granted) {
  for (const AddressRange& one : granted) SetAccessible(one, false);
}

void ShadowTable::SetAccessible(AddressRange range, bool accessible) {
  const auto found = mappings_.find(range.begin);
  const Neighbours around = NeighboursOf(range, *ReservationOf(range), std::next(found));
  areas_ -= Borders(around, &found->second);
  found->second.accessible = accessible;
  areas_ += Borders(around, &found->second);
}

absl::StatusOr<std::vector<FileRange>> ShadowTable::Translate(AddressRange range,
                                                              bool need_access) const {
  if (range.bytes() == 0 || range.end < range.begin) {
    return absl::InvalidArgumentError(absl::StrCat(Name(range), " is not a range"));
  }
  std::vector<FileRange> parts;
  Address at = range.begin;
  for (auto next = FirstBehind(at); at < range.end; ++next) {
    if (next == mappings_.end() || next->first > at) {
      return absl::InvalidArgumentError(
          absl::StrCat("0x", absl::Hex(at.value()), " is not mapped"));
    }
    const auto& [first, mapping] = *next;
    if (need_access && !mapping.accessible) {
      return Broken("R4", "0x", absl::Hex(at.value()), " is mapped but has no access");
    }
    const Address end = std::min(first + mapping.file.bytes, range.end);
    Append(parts, {mapping.file.offset + (at - first), end - at});
    at = end;
  }
  return parts;
}

std::optional<AddressRange> ShadowTable::ReservationOf(AddressRange range) const {
  const auto next = reservations_.upper_bound(range.begin);
  if (next == reservations_.begin()) return std::nullopt;
  const auto& [address, bytes] = *std::prev(next);
  if (range.end > address + bytes) return std::nullopt;
  return AddressRange{address, address + bytes};
}

ShadowTable::Mappings::const_iterator ShadowTable::FirstBehind(Address address) const {
  auto next = mappings_.upper_bound(address);
  if (next != mappings_.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second.file.bytes > address) return previous;
  }
  return next;
}

ShadowTable::Neighbours ShadowTable::NeighboursOf(AddressRange range, AddressRange home,
                                                  Mappings::const_iterator next) const {
  Neighbours around;
  around.left.outside = range.begin == home.begin;
  around.right.outside = range.end == home.end;
  if (next != mappings_.end() && next->first == range.end) around.right.mapping = &next->second;
  // The mapping of `range` itself, if there is one, comes right before `next`.
  auto previous = next;
  if (previous != mappings_.begin() && std::prev(previous)->first == range.begin) --previous;
  if (previous != mappings_.begin()) {
    const auto& [first, mapping] = *--previous;
    if (first + mapping.file.bytes == range.begin) around.left.mapping = &mapping;
  }
  return around;
}

std::uint64_t ShadowTable::Border(Side left, Side right) {
  if (left.outside || right.outside) return 0;
  if (left.mapping == nullptr && right.mapping == nullptr) return 0;
  if (left.mapping == nullptr || right.mapping == nullptr) return 1;
  const FileRange file = left.mapping->file;
  const bool one_area = left.mapping->accessible == right.mapping->accessible &&
                        left.mapping->is_private == right.mapping->is_private &&
                        file.offset + file.bytes == right.mapping->file.offset;
  return one_area ? 0 : 1;
}

std::uint64_t ShadowTable::Borders(const Neighbours& around, const Mapping* middle) {
  return Border(around.left, {middle}) + Border({middle}, around.right);
}

std::uint64_t ShadowTable::CountAreas() const {
  std::uint64_t areas = reservations_.size();
  for (auto next = mappings_.begin(); next != mappings_.end();) {
    const auto& [address, mapping] = *next++;
    const AddressRange range{address, address + mapping.file.bytes};
    const Neighbours around = NeighboursOf(range, *ReservationOf(range), next);
    areas += Border({&mapping}, around.right);
    // A border with a mapping to the left was counted there.
    if (around.left.mapping == nullptr) areas += Border(around.left, {&mapping});
  }
  return areas;
}

void ShadowTable::CheckInvariants() const {
  Address previous_end;
  for (const auto& [address, bytes] : reservations_) {
    THIMBLE_CHECK(address >= previous_end && bytes > 0, "T1: reservations overlap");
    previous_end = address + bytes;
  }
  absl::flat_hash_map<Bytes, References> counted;
  for (const auto& [handle, offset] : handles_) ++counted[offset].handles;
  previous_end = Address();
  for (const auto& [address, mapping] : mappings_) {
    const AddressRange range{address, address + mapping.file.bytes};
    THIMBLE_CHECK(ReservationOf(range).has_value(), "T1: a mapping outside of every reservation");
    THIMBLE_CHECK(address >= previous_end, "T1: mappings overlap");
    previous_end = range.end;
    ++counted[mapping.file.offset].mappings;
    const auto known = references_.find(mapping.file.offset);
    THIMBLE_CHECK(known != references_.end(), "T2: a mapping of a forgotten file range");
    THIMBLE_CHECK(known->second.bytes == mapping.file.bytes, "T3: a mapping of another size");
    THIMBLE_CHECK(mapping.is_private || !known->second.frozen, "T5: a frozen chunk can be written");
  }
  THIMBLE_CHECK(CountAreas() == areas_, "T4: areas are miscounted");
  THIMBLE_CHECK(counted.size() == references_.size(), "T2: a file range without references");
  for (const auto& [offset, count] : counted) {
    const References& known = references_.at(offset);
    THIMBLE_CHECK(known.handles == count.handles && known.mappings == count.mappings,
                  "T2: references are miscounted");
  }
}

}  // namespace thimble
