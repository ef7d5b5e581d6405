// Expandable segments: PyTorch's caching allocator with expandable_segments:True. Written from
// c10/cuda/CUDACachingAllocator.cpp as published:
//   - Sizes are rounded up to 512 B. Up to 1 MiB they come from the small pool (pages of 2 MiB),
//     larger ones from the large pool (pages of 20 MiB).
//   - A segment is a reserved range of 1 1/8 times the device, backed page by page on demand.
//   - Best fit, where a block that could still expand counts with the size it could expand to; the
//     rest is split off if it has at least 512 B.
//   - On a miss the first unmapped stretch with enough room is backed, together with the free block
//     before it. One call grants access to all pages that were mapped at once.
//   - When memory is out, every whole free page of both pools is unmapped and given back, then the
//     request is tried once more.
//
// Simpler than the original, in its favour: the streams of a trace share one pair of pools without
// waiting, and a request that cannot fit fails before pages are created for it.
#include <algorithm>
#include <iterator>
#include <memory>
#include <vector>

#include "allocator/base/check.h"
#include "allocator/driver/driver.h"
#include "tests/bench/block_list.h"
#include "tests/bench/peers.h"

namespace thimble::bench {
namespace {

constexpr Bytes kRounding = 512;
constexpr Bytes kLargestSmall = kMiB;
constexpr Bytes kSmallPage = 2 * kMiB;
constexpr Bytes kLargePage = 20 * kMiB;

struct Segment {
  Address address;
  std::vector<ChunkHandle> pages;  // meaningful where mapped
};

struct Pool {
  explicit Pool(Bytes page) : page_bytes(page) {}

  const Bytes page_bytes;
  BlockList blocks;
  std::vector<Segment> segments;
};

// The size of `block` if the unmapped addresses behind it were backed.
Bytes ExpandableBytes(const Block* block) {
  const Block* next = block->next;
  const bool expands = next != nullptr && next->state == BlockState::kUnmapped;
  return block->bytes + (expands ? next->bytes : 0);
}

bool HasRoom(const Block* block, Bytes bytes) {
  Bytes room = 0;
  for (; block != nullptr && block->state != BlockState::kUsed; block = block->next) {
    room += block->bytes;
    if (room >= bytes) return true;
  }
  return false;
}

class ExpandablePolicy final : public Policy {
 public:
  explicit ExpandablePolicy(Driver& driver)
      : driver_(driver), free_bytes_(driver.properties().total_bytes) {}

  std::uint64_t Allocate(std::uint64_t bytes, std::uint64_t /*stream*/,
                         std::uint64_t /*key*/) override {
    bytes = RoundUp(bytes, kRounding);
    Pool& pool = bytes <= kLargestSmall ? small_ : large_;
    Block* block = FindFree(pool, bytes);
    if (block == nullptr) block = Expand(pool, bytes);
    if (block == nullptr) {
      ReleaseCachedPages(small_);
      ReleaseCachedPages(large_);
      block = Expand(pool, bytes);
    }
    return block == nullptr ? 0 : pool.blocks.Take(block, bytes)->address.value();
  }

  void Free(std::uint64_t given, std::uint64_t /*stream*/) override {
    const Address address(given);
    Block* block = small_.blocks.Find(address);
    Pool& pool = block != nullptr ? small_ : large_;
    if (block == nullptr) block = large_.blocks.Find(address);
    pool.blocks.Give(block);
  }

 private:
  Block* FindFree(Pool& pool, Bytes bytes) const;
  Block* Expand(Pool& pool, Bytes bytes);
  Block* FindRoom(Pool& pool, Bytes bytes);
  Block* MapPages(Pool& pool, Block* block, Bytes bytes);
  void ReleaseCachedPages(Pool& pool);
  static Segment& SegmentOf(Pool& pool, Address address);

  Driver& driver_;
  Bytes free_bytes_;  // of the device
  Pool small_{kSmallPage};
  Pool large_{kLargePage};
};

Block* ExpandablePolicy::FindFree(Pool& pool, Bytes bytes) const {
  auto best = pool.blocks.BestFit(bytes);
  const auto end = pool.blocks.free_blocks().end();
  if (best == end) return nullptr;
  for (auto next = std::next(best); next != end && ExpandableBytes(*next) < ExpandableBytes(*best);
       ++next) {
    best = next;
  }
  return *best;
}

// A free block of at least `bytes`; nullptr if the device has not enough pages. Pages that were
// mapped before the failure stay in the pool.
Block* ExpandablePolicy::Expand(Pool& pool, Bytes bytes) {
  Block* block = FindRoom(pool, bytes);
  if (block->state == BlockState::kUnmapped) {
    block = MapPages(pool, block, std::min(block->bytes, bytes));
  }
  while (block != nullptr && block->bytes < bytes) {
    Block* next = block->next;
    block = MapPages(pool, next, std::min(next->bytes, bytes - block->bytes));
  }
  return block;
}

// The first of the neighbouring free and unmapped blocks that together have room.
Block* ExpandablePolicy::FindRoom(Pool& pool, Bytes bytes) {
  for (const auto& [address, unmapped] : pool.blocks.unmapped_blocks()) {
    Block* before = unmapped->prev;
    Block* block = before != nullptr && before->state == BlockState::kFree ? before : unmapped;
    if (HasRoom(block, bytes)) return block;
  }
  const Bytes device = driver_.properties().total_bytes;
  const Bytes range_bytes = RoundUp(std::max(device + device / 8, bytes), pool.page_bytes);
  const auto range = driver_.Reserve(range_bytes, driver_.properties().granularity);
  THIMBLE_CHECK(range.ok(), "the machine has addresses for another segment");
  pool.segments.push_back({*range, std::vector<ChunkHandle>(range_bytes / pool.page_bytes)});
  return pool.blocks.AddSegment(*range, range_bytes, BlockState::kUnmapped);
}

Block* ExpandablePolicy::MapPages(Pool& pool, Block* block, Bytes bytes) {
  bytes = RoundUp(bytes, pool.page_bytes);
  if (bytes > free_bytes_) return nullptr;
  Segment& segment = SegmentOf(pool, block->address);
  const Address begin = block->address;
  for (Address page = begin; page < begin + bytes; page += pool.page_bytes) {
    const absl::StatusOr<ChunkHandle> chunk = driver_.Create(pool.page_bytes);
    if (!chunk.ok() || !driver_.Map(page, pool.page_bytes, *chunk).ok()) return nullptr;
    segment.pages[(page - segment.address) / pool.page_bytes] = *chunk;
  }
  if (!driver_.SetAccess(begin, bytes).ok()) return nullptr;
  free_bytes_ -= bytes;
  return pool.blocks.Carve(block, begin, begin + bytes, BlockState::kFree);
}

void ExpandablePolicy::ReleaseCachedPages(Pool& pool) {
  const std::vector<Block*> cached(pool.blocks.free_blocks().begin(),
                                   pool.blocks.free_blocks().end());
  for (Block* block : cached) {
    Segment& segment = SegmentOf(pool, block->address);
    const Bytes offset = block->address - segment.address;
    const Address begin = segment.address + RoundUp(offset, pool.page_bytes);
    const Address end = segment.address + RoundDown(offset + block->bytes, pool.page_bytes);
    if (begin >= end) continue;
    for (Address page = begin; page < end; page += pool.page_bytes) {
      const ChunkHandle chunk = segment.pages[(page - segment.address) / pool.page_bytes];
      THIMBLE_CHECK(driver_.Unmap(page, pool.page_bytes).ok(), "a mapped page can be unmapped");
      THIMBLE_CHECK(driver_.Destroy(chunk).ok(), "a page's chunk can be destroyed");
    }
    free_bytes_ += end - begin;
    pool.blocks.Carve(block, begin, end, BlockState::kUnmapped);
  }
}

Segment& ExpandablePolicy::SegmentOf(Pool& pool, Address address) {
  for (Segment& segment : pool.segments) {
    const Bytes bytes = segment.pages.size() * pool.page_bytes;
    if (address - segment.address < bytes) return segment;
  }
  THIMBLE_CHECK(false, "every block lies in a segment");
}

}  // namespace

std::unique_ptr<Policy> MakeExpandable(Driver& driver) {
  return std::make_unique<ExpandablePolicy>(driver);
}

}  // namespace thimble::bench
