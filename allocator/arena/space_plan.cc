// The part of Space that makes plans. What follows them is on the way of a request: space.cc.
#include "absl/container/flat_hash_map.h"
#include "allocator/arena/space.h"

namespace thimble {

Planner::Draft Space::DraftPlan() {
  // Later extents of a stitched block go where the first one goes.
  absl::flat_hash_map<BlockId, SeatId> seat_of_extent;
  pointers_.ForEach([&](Address, BlockId first) {
    for (BlockId id = first; id != kNoBlock; id = heap_.block(id).chain) {
      seat_of_extent[id] = heap_.block(first).seat;
    }
  });
  const auto stays = [&](BlockId id) {
    const Block& block = heap_.block(id);
    if (block.pool == Pool::kSmall) return true;  // slabs, empty or not
    if (block.state != BlockState::kUsed) return false;
    const SeatId seat = seat_of_extent.at(id);
    return seat == kNoSeat || planner_->IsResident(seat);
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
  return planner_->MakeDraft(obstacles);
}

void Space::AdoptPlan(const Planner::Draft& draft, const std::optional<plan::Plan>& plan) {
  if (plan.has_value()) {
    // What is there already: a plan is not to take more memory than the steps it learnt from.
    planner_->Adopt(draft, *plan, heap_.end());
  } else {
    planner_->Abandon();
  }
}

}  // namespace thimble
