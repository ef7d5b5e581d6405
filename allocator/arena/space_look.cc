// The part of Space that tells what is there and changes nothing.
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/arena/space.h"

namespace thimble {

const Block* Space::Find(Address address) const {
  const BlockId id = pointers_.Find(address);
  return id == kNoBlock ? nullptr : &heap_.block(id);
}

Bytes Space::BytesOf(const Block& first) const {
  Bytes bytes = first.bytes;
  for (BlockId id = first.chain; id != kNoBlock; id = heap_.block(id).chain) {
    bytes += heap_.block(id).bytes;
  }
  return bytes;
}

std::optional<BlockInfo> Space::Describe(Address address) const {
  const BlockId id = pointers_.Find(address);
  if (id == kNoBlock) return std::nullopt;
  if (IsInPlanArea(id)) {
    const SiteId site = SiteInPlanArea(id);
    return BlockInfo{planner_->ExtentOf(site).bytes(), planner_->KeyOf(site), 0, address};
  }
  const Block& first = heap_.block(id);
  BlockInfo info = {BytesOf(first) - first.padding, first.key, 0, address};
  for (BlockId next = first.chain; next != kNoBlock; next = heap_.block(next).chain) ++info.seams;
  return info;
}

std::optional<BlockInfo> Space::DescribeAround(Address inside) const {
  if (std::optional<BlockInfo> info = Describe(inside)) return info;
  const auto around = [&](Address address) {
    std::optional<BlockInfo> info = Describe(address);
    return info.has_value() && inside - address < info->bytes ? info : std::nullopt;
  };
  if (IsHome(inside)) {
    if (HomeOffset(inside) >= heap_.end()) return std::nullopt;
    const Block& block = heap_.block(heap_.At(HomeOffset(inside)));
    if (block.state != BlockState::kHeld) {
      return around(home_->base() + block.offset + block.padding);
    }
  }
  Address below;  // the last block that begins there
  pointers_.ForEach([&](Address address, BlockId) {
    if (address <= inside) below = std::max(below, address);
  });
  return around(below);
}

std::vector<SiteId> Space::SitesInPlanArea() const {
  std::vector<SiteId> sites;
  pointers_.ForEach([&](Address, BlockId id) {
    if (IsInPlanArea(id)) sites.push_back(SiteInPlanArea(id));
  });
  std::sort(sites.begin(), sites.end(), [this](SiteId a, SiteId b) {
    return planner_->ExtentOf(a).begin < planner_->ExtentOf(b).begin;
  });
  return sites;
}

std::vector<Space::Piece> Space::Pieces() const {
  std::vector<Piece> pieces;
  const std::vector<SiteId> sites = SitesInPlanArea();
  auto site = sites.begin();
  Bytes end = 0;  // of the pieces so far: a place in the plan area may lie in several blocks
  for (BlockId id = heap_.first(); id != kNoBlock; id = heap_.block(id).next) {
    const Block& block = heap_.block(id);
    const Bytes block_end = heap_.EndOf(id);
    if (block.state == BlockState::kHeld) {
      const auto add_free = [&](Bytes until) {
        if (end >= until) return;
        pieces.push_back({{end, until}, BlockState::kFree, Pool::kLarge, plan_area_tag_});
      };
      for (; site != sites.end() && planner_->ExtentOf(*site).begin < block_end; ++site) {
        const Extent place = planner_->ExtentOf(*site);
        add_free(place.begin);
        pieces.push_back(
            {place, BlockState::kUsed, Pool::kLarge, kCleanTag, planner_->KeyOf(*site)});
        end = place.end;
      }
      add_free(block_end);
    } else {
      pieces.push_back(
          {{block.offset, block_end}, block.state, block.pool, block.tag, block.key, id});
    }
    end = std::max(end, block_end);
  }
  return pieces;
}

Bytes Space::LargestFree() const {
  Bytes largest = heap_.LargestFree();
  if (heap_.held_bytes() == 0) return largest;
  Bytes run = 0;
  for (const Piece& piece : Pieces()) {
    const bool is_usable = piece.state == BlockState::kFree && piece.pool == Pool::kLarge &&
                           (piece.tag == plan_area_tag_ || piece.tag == kCleanTag);
    run = is_usable ? run + piece.extent.bytes() : 0;
    largest = std::max(largest, run);
  }
  return largest;
}

ArenaStats Space::GetStats() const {
  ArenaStats stats = counts_;
  stats.in_use = used();
  stats.free_small = free_bytes(Pool::kSmall);
  stats.free_large = free_bytes(Pool::kLarge) + free_bytes(Pool::kLongLived);
  stats.spare = home_->spare_bytes();
  stats.reserved = reserved();
  stats.vacant = heap_.vacant_bytes();
  stats.limit = limit_;
  stats.peak_in_use = used_peaks_.overall();
  stats.peak_reserved = reserved_peaks_.overall();
  stats.largest_free = LargestFree();
  stats.alias_active = stitcher_.active_bytes();
  stats.alias_idle = stitcher_.idle_bytes();
  stats.live_blocks = pointers_.size();
  static_cast<PlanStats&>(stats) = plan_stats();
  return stats;
}

absl::Status Space::NotABlock(Address address) const {
  const std::string name = absl::StrFormat("%#x", address.value());
  if (!IsHome(address) && !aliases_->Contains(address)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is not memory of this arena: free it where it was allocated"));
  }
  if (IsHome(address) && HomeOffset(address) < heap_.end()) {
    const std::vector<Piece> pieces = Pieces();
    const auto piece = std::find_if(pieces.begin(), pieces.end(), [&](const Piece& each) {
      return HomeOffset(address) < each.extent.end;
    });
    if (piece->state != BlockState::kUsed) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, " is free already: it was freed twice, or never allocated"));
    }
    if (const Bytes begin = piece->extent.begin; HomeOffset(address) != begin) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "%s points %d bytes into a block: free the address that was allocated, %#x", name,
          HomeOffset(address) - begin, (home_->base() + begin).value()));
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat(name, " is not a block in use: it was freed twice, or points into a block"));
}

}  // namespace thimble
