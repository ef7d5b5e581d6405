// GMLake (github.com/intelligent-machine-learning/glake): PyTorch's caching allocator with
// stitching. Written from its published code, with its defaults:
//   - Up to 1 MiB: sizes rounded up to 512 B, best fit in a small pool of 2 MiB regions.
//   - Above: sizes rounded up to 2 MiB. A *primitive* block is a run of 2 MiB chunks in a segment
//   of
//     20 MiB (for requests below 10 MiB) or of exactly the request. Best fit, split, merge.
//   - A *fused* block is a second address range over chunks of several primitive blocks. While idle
//     it is kept, and serves a request of at least a tenth of its size when all its chunks are
//     free.
//   - A request of at least fragLimit (512 MiB) that finds neither takes the largest free primitive
//     blocks until they suffice and fuses them: one Reserve, and per chunk one Map and one
//     SetAccess.
//   - Otherwise a new segment. When memory is out, whole free segments are given back, with the
//     fused blocks that need their chunks; then a new segment and fusing are tried once more.
//   - Idle fused blocks are collected when fused blocks span more than 1000 GiB (autoGC), and when
//     the driver has no mapping left for a new one.
//
// Simpler than the original, in its favour: streams share the pools without waiting, events are
// always ready, a size that cannot fit fails before chunks are created for it, and collecting takes
// everything at once instead of escalating.
#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "allocator/base/check.h"
#include "allocator/driver/driver.h"
#include "tests/bench/block_list.h"
#include "tests/bench/driver_regions.h"
#include "tests/bench/peers.h"

namespace thimble::bench {
namespace {

constexpr Bytes kSmallRounding = 512;
constexpr Bytes kLargestSmall = kMiB;
constexpr Bytes kSmallRegion = 2 * kMiB;
constexpr Bytes kChunk = 2 * kMiB;
constexpr Bytes kSharedSegment = 20 * kMiB;
constexpr Bytes kSmallestOwnSegment = 10 * kMiB;
constexpr Bytes kFragLimit = 512 * kMiB;
constexpr Bytes kReuseLimit = 10;
constexpr Bytes kAutoCollect = 1000 * kGiB;

struct FusedBlock;

struct Chunk {
  ChunkHandle handle;
  Address home;  // in its primitive segment
  std::vector<FusedBlock*> fused;
};

struct FusedBlock {
  Address address;
  std::vector<Chunk*> chunks;
  std::vector<bool> mapped;         // false where a chunk was given back while the block was live
  std::size_t busy_chunks = 0;      // in use, through this block or any other
  std::size_t live_chunks = 0;      // handed out through this block; 0 while idle
  std::vector<Address> live_parts;  // the primitive blocks taken for that
  bool doomed = false;              // lost a chunk while live: collected as soon as it is idle

  Bytes bytes() const { return chunks.size() * kChunk; }
  bool is_idle() const { return live_chunks == 0; }
  bool is_reusable() const { return is_idle() && busy_chunks == 0; }
};

class GmlakePolicy final : public Policy {
 public:
  explicit GmlakePolicy(Driver& driver)
      : driver_(driver), free_bytes_(driver.properties().total_bytes), regions_(driver) {}

  std::uint64_t Allocate(std::uint64_t bytes, std::uint64_t /*stream*/,
                         std::uint64_t /*key*/) override;
  void Free(std::uint64_t address, std::uint64_t /*stream*/) override;

 private:
  struct BySize {
    bool operator()(const FusedBlock* a, const FusedBlock* b) const {
      return a->bytes() != b->bytes() ? a->bytes() < b->bytes() : a->address < b->address;
    }
  };

  Address AllocateSmall(Bytes bytes);
  bool GrowSmall();

  Address TakePrimitive(Bytes bytes);
  Address ReuseFused(Bytes bytes);
  Address Fuse(Bytes bytes);
  Address GrowLarge(Bytes bytes);
  void ReleaseCached();

  // Tells fused blocks that [address, address + bytes) of a segment is used or free now.
  void MarkBusy(Address address, Bytes bytes);
  void MarkFree(Address address, Bytes bytes);

  Address UseFused(FusedBlock* block, Bytes bytes);
  void FreeFused(FusedBlock* block);
  bool MapFused(FusedBlock* block);
  void DropFused(FusedBlock* block);
  void CollectIdleFused();
  void ReleaseSegment(Address address, Bytes bytes);
  void ForgetChunk(Chunk* chunk);

  Driver& driver_;
  Bytes free_bytes_;  // of the device
  DriverRegions regions_;
  BlockList small_;
  BlockList large_;
  absl::btree_map<Address, std::vector<Chunk>> segments_;
  absl::flat_hash_map<Address, std::unique_ptr<FusedBlock>> fused_;
  absl::btree_set<FusedBlock*, BySize> reusable_;
  Bytes fused_bytes_ = 0;
};

std::uint64_t GmlakePolicy::Allocate(std::uint64_t bytes, std::uint64_t /*stream*/,
                                     std::uint64_t /*key*/) {
  if (RoundUp(bytes, kSmallRounding) <= kLargestSmall) {
    return AllocateSmall(RoundUp(bytes, kSmallRounding)).value();
  }
  bytes = RoundUp(bytes, kChunk);
  Address address = TakePrimitive(bytes);
  if (!address) address = ReuseFused(bytes);
  if (!address) address = Fuse(bytes);
  if (!address) address = GrowLarge(bytes);
  if (!address) {
    ReleaseCached();
    address = GrowLarge(bytes);
  }
  return (address ? address : Fuse(bytes)).value();
}

void GmlakePolicy::Free(std::uint64_t given, std::uint64_t /*stream*/) {
  const Address address(given);
  if (Block* block = small_.Find(address)) {
    small_.Give(block);
    return;
  }
  const auto fused = fused_.find(address);
  if (fused != fused_.end()) {
    FreeFused(fused->second.get());
    return;
  }
  Block* block = large_.Find(address);
  MarkFree(block->address, block->bytes);
  large_.Give(block);
}

Address GmlakePolicy::AllocateSmall(Bytes bytes) {
  auto fit = small_.BestFit(bytes);
  if (fit == small_.free_blocks().end()) {
    if (!GrowSmall()) {
      ReleaseCached();
      if (!GrowSmall()) return Address();
    }
    fit = small_.BestFit(bytes);
  }
  return small_.Take(*fit, bytes)->address;
}

bool GmlakePolicy::GrowSmall() {
  const Address region(regions_.Take(kSmallRegion));
  if (!region) return false;
  free_bytes_ -= kSmallRegion;
  small_.AddSegment(region, kSmallRegion, BlockState::kFree);
  return true;
}

Address GmlakePolicy::TakePrimitive(Bytes bytes) {
  const auto fit = large_.BestFit(bytes);
  if (fit == large_.free_blocks().end()) return Address();
  const Block* block = large_.Take(*fit, bytes);
  MarkBusy(block->address, bytes);
  return block->address;
}

Address GmlakePolicy::ReuseFused(Bytes bytes) {
  // The order is by size and chunks decide the size, so a key needs no more than its chunks.
  FusedBlock key;
  key.chunks.resize(bytes / kChunk);
  const auto fit = reusable_.lower_bound(&key);
  if (fit == reusable_.end() || (*fit)->bytes() > bytes * kReuseLimit) return Address();
  return UseFused(*fit, bytes);
}

// Largest free blocks first; like the original it does not bother with a single one.
Address GmlakePolicy::Fuse(Bytes bytes) {
  if (bytes < kFragLimit || large_.free_blocks().size() < 2) return Address();
  auto block = std::make_unique<FusedBlock>();
  const std::size_t count = bytes / kChunk;
  const auto& free = large_.free_blocks();
  for (auto it = free.rbegin(); it != free.rend() && block->chunks.size() < count; ++it) {
    auto segment = std::prev(segments_.upper_bound((*it)->address));
    Chunk* chunk = &segment->second[((*it)->address - segment->first) / kChunk];
    for (Bytes i = 0; i < (*it)->bytes / kChunk && block->chunks.size() < count; ++i) {
      block->chunks.push_back(chunk++);
    }
  }
  if (block->chunks.size() < count) return Address();
  if (!MapFused(block.get())) {
    CollectIdleFused();
    if (!MapFused(block.get())) return Address();
  }
  FusedBlock* fused = block.get();
  for (Chunk* chunk : fused->chunks) chunk->fused.push_back(fused);
  fused_.emplace(fused->address, std::move(block));
  fused_bytes_ += bytes;
  const Address address = UseFused(fused, bytes);
  if (fused_bytes_ > kAutoCollect) CollectIdleFused();
  return address;
}

Address GmlakePolicy::GrowLarge(Bytes bytes) {
  const Bytes segment_bytes = bytes < kSmallestOwnSegment ? kSharedSegment : bytes;
  if (segment_bytes > free_bytes_) return Address();
  const absl::StatusOr<Address> range = driver_.Reserve(segment_bytes, kChunk);
  if (!range.ok()) return Address();
  std::vector<Chunk>& chunks = segments_[*range];
  for (Address home = *range; home < *range + segment_bytes; home += kChunk) {
    const absl::StatusOr<ChunkHandle> handle = driver_.Create(kChunk);
    if (!handle.ok()) return Address();
    if (!driver_.Map(home, kChunk, *handle).ok() || !driver_.SetAccess(home, kChunk).ok())
      return Address();
    chunks.push_back({*handle, home, {}});
    free_bytes_ -= kChunk;
  }
  return large_.Take(large_.AddSegment(*range, segment_bytes, BlockState::kFree), bytes)->address;
}

void GmlakePolicy::ReleaseCached() {
  std::vector<Block*> whole;
  for (Block* block : large_.free_blocks()) {
    if (block->is_whole_segment()) whole.push_back(block);
  }
  for (Block* block : whole) {
    ReleaseSegment(block->address, block->bytes);
    large_.RemoveSegment(block);
  }
  whole.clear();
  for (Block* block : small_.free_blocks()) {
    if (block->is_whole_segment()) whole.push_back(block);
  }
  for (Block* block : whole) {
    regions_.Give(block->address.value());
    free_bytes_ += block->bytes;
    small_.RemoveSegment(block);
  }
}

void GmlakePolicy::ReleaseSegment(Address address, Bytes bytes) {
  const auto segment = segments_.find(address);
  for (Chunk& chunk : segment->second) {
    ForgetChunk(&chunk);
    THIMBLE_CHECK(driver_.Unmap(chunk.home, kChunk).ok(), "a mapped chunk can be unmapped");
    THIMBLE_CHECK(driver_.Destroy(chunk.handle).ok(), "an unmapped chunk can be destroyed");
  }
  THIMBLE_CHECK(driver_.Release(address, bytes).ok(), "an empty range can be released");
  segments_.erase(segment);
  free_bytes_ += bytes;
}

// Idle fused blocks disappear with the chunk; a live one that does not hand out the chunk loses
// only its mapping.
void GmlakePolicy::ForgetChunk(Chunk* chunk) {
  while (!chunk->fused.empty()) {
    FusedBlock* block = chunk->fused.back();
    if (block->is_idle()) {
      DropFused(block);
      continue;
    }
    const auto it = std::find(block->chunks.begin(), block->chunks.end(), chunk);
    const std::size_t slot = static_cast<std::size_t>(it - block->chunks.begin());
    THIMBLE_CHECK(driver_.Unmap(block->address + slot * kChunk, kChunk).ok(),
                  "a mapped chunk can be unmapped");
    block->mapped[slot] = false;
    block->chunks[slot] = nullptr;
    block->doomed = true;
    chunk->fused.pop_back();
  }
}

void GmlakePolicy::MarkBusy(Address address, Bytes bytes) {
  const auto segment = std::prev(segments_.upper_bound(address));
  Chunk* chunk = &segment->second[(address - segment->first) / kChunk];
  for (Bytes done = 0; done < bytes; done += kChunk, ++chunk) {
    for (FusedBlock* block : chunk->fused) {
      if (block->is_reusable()) reusable_.erase(block);
      ++block->busy_chunks;
    }
  }
}

void GmlakePolicy::MarkFree(Address address, Bytes bytes) {
  const auto segment = std::prev(segments_.upper_bound(address));
  Chunk* chunk = &segment->second[(address - segment->first) / kChunk];
  for (Bytes done = 0; done < bytes; done += kChunk, ++chunk) {
    for (FusedBlock* block : chunk->fused) {
      --block->busy_chunks;
      if (block->is_reusable()) reusable_.insert(block);
    }
  }
}

// Hands out the first `bytes` of an idle block whose chunks are all free. Neighbouring chunks leave
// their primitive block together.
Address GmlakePolicy::UseFused(FusedBlock* block, Bytes bytes) {
  reusable_.erase(block);
  block->live_chunks = bytes / kChunk;
  for (std::size_t i = 0; i < block->live_chunks;) {
    const Address begin = block->chunks[i]->home;
    Block* primitive = large_.Containing(begin);
    Address end = begin;
    while (i < block->live_chunks && block->chunks[i]->home == end && end < primitive->end()) {
      end += kChunk;
      ++i;
    }
    large_.Carve(primitive, begin, end, BlockState::kUsed);
    MarkBusy(begin, end - begin);
    block->live_parts.push_back(begin);
  }
  return block->address;
}

void GmlakePolicy::FreeFused(FusedBlock* block) {
  for (const Address part : block->live_parts) {
    Block* primitive = large_.Find(part);
    MarkFree(part, primitive->bytes);
    large_.Give(primitive);
  }
  block->live_parts.clear();
  block->live_chunks = 0;
  if (block->doomed) {
    DropFused(block);
  } else if (block->is_reusable()) {
    reusable_.insert(block);
  }
}

bool GmlakePolicy::MapFused(FusedBlock* block) {
  const absl::StatusOr<Address> range = driver_.Reserve(block->bytes(), kChunk);
  if (!range.ok()) return false;
  block->address = *range;
  block->mapped.assign(block->chunks.size(), false);
  for (std::size_t i = 0; i < block->chunks.size(); ++i) {
    const Address address = *range + i * kChunk;
    if (driver_.Map(address, kChunk, block->chunks[i]->handle).ok()) {
      block->mapped[i] = true;
      if (driver_.SetAccess(address, kChunk).ok()) continue;
    }
    for (std::size_t j = 0; j < block->chunks.size() && block->mapped[j]; ++j) {
      THIMBLE_CHECK(driver_.Unmap(*range + j * kChunk, kChunk).ok(), "what is mapped is unmapped");
    }
    THIMBLE_CHECK(driver_.Release(*range, block->bytes()).ok(), "an empty range can be released");
    return false;
  }
  return true;
}

void GmlakePolicy::DropFused(FusedBlock* block) {
  if (block->is_reusable()) reusable_.erase(block);
  for (std::size_t i = 0; i < block->chunks.size(); ++i) {
    if (!block->mapped[i]) continue;
    THIMBLE_CHECK(driver_.Unmap(block->address + i * kChunk, kChunk).ok(),
                  "a mapped chunk can be unmapped");
    std::vector<FusedBlock*>& users = block->chunks[i]->fused;
    users.erase(std::find(users.begin(), users.end(), block));
  }
  THIMBLE_CHECK(driver_.Release(block->address, block->bytes()).ok(), "an empty range is released");
  fused_bytes_ -= block->bytes();
  fused_.erase(block->address);
}

void GmlakePolicy::CollectIdleFused() {
  std::vector<FusedBlock*> idle;
  for (const auto& [address, block] : fused_) {
    if (block->is_idle()) idle.push_back(block.get());
  }
  for (FusedBlock* block : idle) DropFused(block);
}

}  // namespace

std::unique_ptr<Policy> MakeGmlake(Driver& driver) {
  return std::make_unique<GmlakePolicy>(driver);
}

}  // namespace thimble::bench
