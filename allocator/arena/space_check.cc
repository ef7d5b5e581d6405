// The invariants of Space.
#include "absl/container/flat_hash_set.h"
#include "allocator/arena/space.h"
#include "allocator/base/check.h"

namespace thimble {

void Space::CheckInvariants() const {
  home_->CheckInvariants();
  aliases_->CheckInvariants();
  heap_.CheckInvariants();
  stitcher_.CheckInvariants();
  THIMBLE_CHECK(home_->backed_bytes() <= limit(), "P2: more is backed than the limit allows");
  Bytes in_map = 0;
  pointers_.ForEach([&](Address address, BlockId id) {
    if (IsInPlanArea(id)) return;
    const Block& block = heap_.block(id);
    THIMBLE_CHECK(block.state == BlockState::kUsed, "P1: an address names a block not in use");
    if (block.alias == kNoAlias) {
      THIMBLE_CHECK(address == home_->base() + block.offset && block.chain == kNoBlock,
                    "P1: a block is seen at an address that is not its own");
    } else {
      THIMBLE_CHECK(stitcher_.ShowsChain(id, address - block.padding),
                    "P1: a stitched block is seen where its bytes are not");
    }
    in_map += BytesOf(block);
  });
  THIMBLE_CHECK(in_map == heap_.used_bytes(), "P1: a block in use is not in the map");
  if (planner_ != nullptr) {
    CheckSites();
    CheckPlanArea();
  }
  Bytes absent = 0;
  for (BlockId id = heap_.first(); id != kNoBlock; id = heap_.block(id).next) {
    absent += CheckBacking(heap_.block(id));
  }
  THIMBLE_CHECK(absent == absent_bytes_, "P3: absent_bytes is not the sum over blocks");
}

// How much of it has no memory although it is in use.
Bytes Space::CheckBacking(const Block& block) const {
  Bytes absent = 0;
  for (Bytes at = block.offset; at < block.offset + block.bytes; at += options_.chunk_bytes) {
    const bool backed = home_->ChunkAt(at) != kNoChunk;
    if (block.state == BlockState::kUsed && block.absent && !backed) {
      absent += options_.chunk_bytes;
    } else {
      THIMBLE_CHECK(backed == (block.state != BlockState::kVacant),
                    "P3: heap and home space disagree about what is backed");
    }
  }
  return absent;
}

void Space::CheckSites() const {
  planner_->CheckInvariants();
  absl::flat_hash_set<SiteId> sites;
  pointers_.ForEach([&](Address, BlockId id) {
    const SiteId site = IsInPlanArea(id) ? SiteInPlanArea(id) : heap_.block(id).site;
    if (site == kNoSite) return;
    THIMBLE_CHECK(planner_->IsTaken(site) && sites.insert(site).second,
                  "P5: two blocks have one site, or one that nobody took");
  });
  THIMBLE_CHECK(sites.size() == planner_->taken_sites(), "P5: a taken site has no block");
}

void Space::CheckPlanArea() const {
  Bytes taken = 0;
  pointers_.ForEach([&](Address address, BlockId id) {
    if (!IsInPlanArea(id)) return;
    const Extent place = planner_->ExtentOf(SiteInPlanArea(id));
    THIMBLE_CHECK(address == home_->base() + place.begin,
                  "P6: a block of the plan area is not at its place");
    taken += place.bytes();
  });
  THIMBLE_CHECK(
      taken == plan_area_used_ && taken + planner_->area().OpenBytes() == heap_.held_bytes(),
      "P6: what is held is neither open nor taken");
}

}  // namespace thimble
