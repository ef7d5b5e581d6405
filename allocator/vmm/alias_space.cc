#include "allocator/vmm/alias_space.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/check.h"
#include "allocator/base/status_macros.h"
#include "allocator/vmm/give_back.h"

namespace thimble {
namespace {

// Calls visit(chunk id, offset in the window) for the first `limit` chunks of `runs`, in order.
template <typename Visit>
void ForEachChunk(const HomeSpace& home, const std::vector<Extent>& runs, std::uint32_t limit,
                  Visit visit) {
  Bytes at = 0;
  for (const Extent& run : runs) {
    for (Bytes offset = run.begin; offset < run.end;) {
      if (limit-- == 0) return;
      const ChunkId id = home.ChunkAt(offset);
      visit(id, at);
      offset += home.chunk(id).bytes;
      at += home.chunk(id).bytes;
    }
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<AliasSpace>> AliasSpace::Create(HomeSpace* home, Bytes capacity) {
  const Bytes alignment = std::max(HomeSpace::kAlignment, home->driver().properties().granularity);
  THIMBLE_ASSIGN_OR_RETURN(const Address base, home->driver().Reserve(capacity, alignment));
  return std::unique_ptr<AliasSpace>(new AliasSpace(home, base, capacity));
}

AliasSpace::AliasSpace(HomeSpace* home, Address base, Bytes capacity)
    : home_(home), base_(base), capacity_(capacity), windows_(capacity) {}

AliasSpace::~AliasSpace() {
  const auto unmap = [&](Alias& alias) {
    std::uint32_t before = 0;
    do {  // as long as there is progress: each mapping is offered twice
      before = alias.mappings;
      GiveBack([&] { return UnmapRuns(&alias); });
    } while (alias.mappings != 0 && alias.mappings < before);
  };
  for (Alias& alias : aliases_) unmap(alias);
  for (Alias& alias : half_dropped_) unmap(alias);
  GiveBack([&] { return home_->driver().Release(base_, capacity_); });
}

absl::StatusOr<AliasId> AliasSpace::Build(absl::Span<const Extent> runs) {
  RetryHalfDropped();
  Alias alias;
  alias.runs.assign(runs.begin(), runs.end());
  for (const Extent& run : runs) alias.bytes += run.bytes();
  const std::optional<Bytes> offset = windows_.Take(alias.bytes);
  if (!offset) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no window of ", FormatBytes(alias.bytes), " is left in the alias addresses (",
                     FormatBytes(capacity_), "): too many stitched blocks are held at once"));
  }
  alias.offset = *offset;
  absl::Status status = MapRuns(&alias);
  if (status.ok()) status = home_->driver().SetAccess(base_ + alias.offset, alias.bytes);
  if (status.ok()) {
    const AliasId id = NewRecord();
    if (events_ != nullptr && events_->enabled()) Report(alias);
    aliases_[id] = std::move(alias);
    return id;
  }
  Discard(std::move(alias));
  return status;
}

void AliasSpace::Drop(AliasId id) {
  const Alias& alias = aliases_[id];
  if (events_ != nullptr && events_->enabled()) {
    events_->Append({EventKind::kUnalias, (base_ + alias.offset).value(), alias.bytes, StreamId{},
                     /*key=*/0, 0});
  }
  Discard(std::exchange(aliases_[id], {}));
  unused_.push_back(id);
}

void AliasSpace::Discard(Alias alias) {
  if (UnmapRuns(&alias).ok()) {
    windows_.Give(alias.offset, alias.bytes);
  } else {
    half_dropped_.push_back(std::move(alias));
  }
}

absl::Status AliasSpace::MapRuns(Alias* alias) {
  absl::Status status;
  ForEachChunk(*home_, alias->runs, ~std::uint32_t{0}, [&](ChunkId id, Bytes at) {
    if (!status.ok()) return;
    Chunk& chunk = home_->chunk(id);
    status = home_->driver().Map(base_ + alias->offset + at, chunk.bytes, chunk.handle);
    if (!status.ok()) return;
    ++chunk.aliases;
    ++alias->mappings;
    ++mappings_;
  });
  return status;
}

absl::Status AliasSpace::UnmapRuns(Alias* alias) {
  struct Place {
    ChunkId id;
    Bytes at;
  };
  std::vector<Place> places;
  ForEachChunk(*home_, alias->runs, alias->mappings, [&](ChunkId id, Bytes at) {
    places.push_back({id, at});
  });
  // Last first, so that what is left after an error is again a prefix of the runs.
  for (auto place = places.rbegin(); place != places.rend(); ++place) {
    Chunk& chunk = home_->chunk(place->id);
    THIMBLE_RETURN_IF_ERROR(home_->driver().Unmap(base_ + alias->offset + place->at, chunk.bytes));
    --chunk.aliases;
    --alias->mappings;
    --mappings_;
  }
  return absl::OkStatus();
}

void AliasSpace::RetryHalfDropped() {
  for (Alias& alias : std::exchange(half_dropped_, {})) Discard(std::move(alias));
}

void AliasSpace::Report(const Alias& alias) const {
  Address address = base_ + alias.offset;
  for (const Extent& run : alias.runs) {
    events_->Append({EventKind::kAlias, address.value(), run.bytes(), StreamId{},
                     /*key=*/(home_->base() + run.begin).value(), 0});
    address += run.bytes();
  }
}

void AliasSpace::ReportAll() const {
  for (const Alias& alias : aliases_) Report(alias);
}

AliasId AliasSpace::NewRecord() {
  if (unused_.empty()) {
    aliases_.emplace_back();
    return static_cast<AliasId>(aliases_.size() - 1);
  }
  const AliasId id = unused_.back();
  unused_.pop_back();
  return id;
}

void AliasSpace::CheckInvariants() const {
  windows_.CheckInvariants();
  absl::flat_hash_map<ChunkId, std::uint32_t> references;
  std::vector<Extent> windows;
  std::uint64_t mappings = 0;
  const auto check = [&](const Alias& alias) {
    if (alias.bytes == 0) return;
    std::uint32_t chunks = 0;
    Bytes bytes = 0;
    ForEachChunk(*home_, alias.runs, alias.mappings, [&](ChunkId id, Bytes at) {
      THIMBLE_CHECK(id != kNoChunk && at == bytes, "A1: a run is not whole chunks");
      ++references[id];
      ++chunks;
      bytes += home_->chunk(id).bytes;
    });
    THIMBLE_CHECK(chunks == alias.mappings, "A1: an alias maps more than its runs");
    mappings += chunks;
    windows.push_back({alias.offset, alias.offset + alias.bytes});
  };
  for (const Alias& alias : aliases_) check(alias);
  for (const Alias& alias : half_dropped_) check(alias);
  THIMBLE_CHECK(mappings == mappings_, "A2: mappings() is not the sum over aliases");
  for (const auto& [id, count] : references) {
    THIMBLE_CHECK(home_->chunk(id).aliases == count, "A2: a chunk miscounts its aliases");
  }
  std::sort(windows.begin(), windows.end(),
            [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
  for (std::size_t i = 1; i < windows.size(); ++i) {
    THIMBLE_CHECK(windows[i - 1].end <= windows[i].begin, "A3: two windows overlap");
  }
}

}  // namespace thimble
