// The part of Space that follows plans, makes them and brings memory to where they need it.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "allocator/arena/space.h"
#include "allocator/base/check.h"

namespace thimble {

// --- On the way of a request -------------------------------------------------------------------

inline Address Space::PlanAreaFit(const Place& place, const Request& request, StreamTag tag) {
  PlanArea& area = planner_->area();
  if (!IsAligned(place.offset, request.alignment)) return Address();
  if (!area.IsOpen(place.cells)) {
    const auto hold = [&](Extent part) { return heap_.Hold(part, tag); };
    if (!area.OpenRest(place.cells, hold)) return Address();
  }
  area.Close(place.cells);
  const Address address = home_->base() + place.offset;
  pointers_.Put(address, request.site | kInPlanArea);
  plan_area_used_ += request.bytes;
  used_peaks_.Raise(used());
  return address;
}

Address Space::PlannedFit(const Request& request, StreamTag tag) {
  const Place* const place = planner_->FindPlace(request.site);
  if (place == nullptr) return Address();
  if (tag != plan_area_tag_ && !plan_area_is_shared_) {
    if (plan_area_tag_ != kCleanTag) SharePlanArea();
    plan_area_tag_ = tag;
  }
  Address address = plan_area_is_shared_ ? TakeAt(place->offset, request, tag)
                                         : PlanAreaFit(*place, request, tag);
  if (address) {
    planner_->CountHit(request.site);
    return address;
  }
  Settle();
  planner_->Repair(request.site, [&](Bytes offset) {
    address = TakeAt(offset, request, tag);
    return static_cast<bool>(address);
  });
  if (address) ReportPlace(request.site);
  return address;
}

void Space::LeavePlanArea(SiteId site) {
  frontier_.NoteFree(plan_area_tag_);
  planner_->area().Open(planner_->CellsOf(site));
  plan_area_used_ -= planner_->ExtentOf(site).bytes();
  planner_->Leave(site);
}

void Space::SharePlanArea() {
  Settle();
  plan_area_is_shared_ = true;
}

void Space::Settle() {
  if (heap_.held_bytes() == 0) return;
  const std::vector<SiteId> sites = SitesInPlanArea();
  planner_->area().CloseAll();
  plan_area_used_ = 0;
  heap_.ReleaseHeld(plan_area_tag_, frontier_.NoteFree(plan_area_tag_));
  for (const SiteId site : sites) {
    const Extent place = planner_->ExtentOf(site);
    pointers_.Take(home_->base() + place.begin);
    Request request;
    request.bytes = place.bytes();
    request.key = planner_->KeyOf(site);
    request.site = site;
    THIMBLE_CHECK(TakeAt(place.begin, request, plan_area_tag_),
                  "P6: two blocks of the plan area overlap");
  }
}

// --- Planning ----------------------------------------------------------------------------------

std::optional<Planner::Draft> Space::DraftPlan() {
  Settle();
  Planner::Ground ground = FindGround();
  if (ground.holds_much && !ground.has_all_held && planner_->PostponeDraft()) return std::nullopt;
  return planner_->MakeDraft(std::move(ground));
}

void Space::AdoptPlan(const Planner::Draft& draft, const std::optional<plan::Plan>& plan) {
  if (plan.has_value()) {
    planner_->Adopt(draft, *plan);
  } else {
    planner_->Abandon();
  }
}

// What stays where it is, in order: slabs of other pools, long-lived blocks, blocks without a site.
std::vector<Extent> Space::FindObstacles() const {
  // Later extents of a stitched block go where the first one goes.
  absl::flat_hash_map<BlockId, SiteId> site_of_extent;
  pointers_.ForEach([&](Address, BlockId first) {
    for (BlockId id = first; id != kNoBlock; id = heap_.block(id).chain) {
      site_of_extent[id] = heap_.block(first).site;
    }
  });
  const auto stays = [&](BlockId id) {
    const Block& block = heap_.block(id);
    if (block.pool != Pool::kLarge) return true;
    if (block.state != BlockState::kUsed) return false;
    const SiteId site = site_of_extent.at(id);
    return site == kNoSite || planner_->IsLongLived(site);
  };
  std::vector<Extent> obstacles;
  for (BlockId id = heap_.first(); id != kNoBlock; id = heap_.block(id).next) {
    if (!stays(id)) continue;
    const Extent extent = {heap_.block(id).offset, heap_.EndOf(id)};
    if (!obstacles.empty() && obstacles.back().end == extent.begin) {
      obstacles.back().end = extent.end;
    } else {
      obstacles.push_back(extent);
    }
  }
  return obstacles;
}

// The part of a gap between obstacles whose chunks hold nothing of them.
Extent Space::InnerOf(Extent gap) const {
  Extent inner = gap;
  if (const ChunkId id = home_->ChunkAt(gap.begin); id != kNoChunk) {
    const Chunk& chunk = home_->chunk(id);
    if (chunk.offset < gap.begin) inner.begin = chunk.offset + chunk.bytes;
  }
  if (const ChunkId id = home_->ChunkAt(gap.end - 1); id != kNoChunk) {
    const Chunk& chunk = home_->chunk(id);
    if (chunk.offset + chunk.bytes > gap.end) inner.end = chunk.offset;
  }
  inner.end = std::max(inner.begin, inner.end);
  return inner;
}

Bytes Space::BackedBytes(Extent slots) const {
  Bytes backed = 0;
  for (Bytes at = slots.begin; at < std::min(slots.end, heap_.end()); at += options_.chunk_bytes) {
    if (home_->ChunkAt(at) != kNoChunk) backed += options_.chunk_bytes;
  }
  return backed;
}

// All memory but that of obstacles' chunks can be brought together, at the first range of addresses
// that is large enough. There is no room for places then in what it is taken from.
Planner::Ground Space::FindGround() const {
  const std::vector<Extent> obstacles = FindObstacles();
  struct Gap {
    Extent all;
    Extent inner;
  };
  std::vector<Gap> gaps;
  Bytes movable = 0;
  Bytes begin = 0;
  const auto add_gap = [&](Bytes end) {
    if (begin == end) return;
    const Extent inner = InnerOf({begin, end});
    gaps.push_back({{begin, end}, inner});
    movable += BackedBytes(inner);
  };
  for (const Extent& obstacle : obstacles) {
    add_gap(obstacle.begin);
    begin = obstacle.end;
  }
  add_gap(home_->capacity());

  auto chosen = std::find_if(gaps.begin(), gaps.end(),
                             [&](const Gap& gap) { return gap.inner.bytes() >= movable; });
  if (chosen == gaps.end()) {
    chosen = std::max_element(gaps.begin(), gaps.end(), [](const Gap& a, const Gap& b) {
      return a.inner.bytes() < b.inner.bytes();
    });
  }
  Planner::Ground ground;
  ground.region = {chosen->inner.begin, std::min(chosen->inner.begin + movable, chosen->inner.end)};
  ground.kept = home_->backed_bytes() - movable;
  for (auto gap = gaps.begin(); gap != chosen; ++gap) {
    ground.free += gap->all.bytes() - gap->inner.bytes();
    if (gap->inner.bytes() > 0) ground.obstacles.push_back(gap->inner);
  }
  ground.free += chosen->inner.begin - chosen->all.begin;
  for (const Extent& obstacle : obstacles) {
    if (obstacle.begin < ground.region.begin) ground.obstacles.push_back(obstacle);
  }
  FindHeld(&ground);
  return ground;
}

// What is held besides long-lived blocks: a little, such as the next batch, or much, such as
// parameters.
void Space::FindHeld(Planner::Ground* ground) const {
  constexpr Bytes kLittle = 16;  // one part in so many
  Bytes held_bytes = 0;
  pointers_.ForEach([&](Address, BlockId id) {
    const Block& block = heap_.block(id);
    if (block.site == kNoSite || planner_->IsLongLived(block.site)) return;
    held_bytes += BytesOf(block);
    const bool is_inside =
        block.offset >= ground->region.begin && heap_.EndOf(id) <= ground->region.end;
    if (is_inside && block.alias == kNoAlias && block.padding == 0) {
      ground->held[block.site] = block.offset;
    } else {
      ground->has_all_held = false;
    }
  });
  ground->holds_much = held_bytes * kLittle > ground->region.bytes();
  if (!ground->holds_much) ground->held.clear();
}

// Blocks of the old order stand in the way of the new one until they are freed, and others must go
// elsewhere meanwhile. If there is no room for that, the old order is the better one.
bool Space::IsGoodMoment() const {
  Bytes in_the_way = 0;
  pointers_.ForEach([&](Address, BlockId id) {
    const Block& block = heap_.block(id);
    if (block.site == kNoSite || planner_->IsLongLived(block.site)) return;
    if (planner_->DuePlaceOf(block.site) != block.offset) in_the_way += BytesOf(block);
  });
  if (in_the_way == 0) return true;
  if (planner_->IsPatient()) return false;
  const auto device = driver().GetMemoryInfo();
  const Bytes allowed = limit() - home_->backed_bytes();
  return in_the_way <= std::min(allowed, device.ok() ? device->free_bytes : 0);
}

void Space::ActivatePlan() {
  Settle();
  plan_area_is_shared_ = false;
  if (!IsGoodMoment()) return planner_->Postpone();
  heap_.KeepSlabs();
  const Extent region = planner_->region();
  planner_->Activate(BackRegion({region.begin, AlignUp(region.end, options_.chunk_bytes)}));
}

void Space::ReportPlaces() {
  if (planner_ == nullptr) return;
  planner_->ForEachPlaced([this](SiteId site) { ReportPlace(site); });
}

void Space::ReportPlace(SiteId site) {
  if (events_ == nullptr || !events_->enabled()) return;
  const Extent place = planner_->ExtentOf(site);
  events_->Append({EventKind::kPlace, (home_->base() + place.begin).value(), place.bytes(),
                   StreamId{site}, planner_->KeyOf(site), 0});
}

// Whether all of the region has memory in the end. What is reserved does not grow.
bool Space::BackRegion(Extent region) {
  aliases_->RetryHalfDropped();
  DropIdle();
  const Bytes before = home_->backed_bytes();
  ForEachIdleChunk([&](ChunkId id, Extent chunk) {
    const bool is_outside = chunk.end <= region.begin || chunk.begin >= region.end;
    if (is_outside && home_->Detach(id).ok()) heap_.Vacate(chunk);
    return true;
  });
  const Bytes slot = options_.chunk_bytes;
  bool is_whole = true;
  for (Bytes at = region.begin; is_whole && at < region.end; at += slot) {
    if (home_->ChunkAt(at) != kNoChunk) continue;
    is_whole = home_->backed_bytes() + slot <= before && BackAt(at, slot, slot, kCleanTag).ok();
  }
  home_->DestroySpares();
  return is_whole;
}

}  // namespace thimble
