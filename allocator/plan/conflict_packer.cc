#include "allocator/plan/conflict_packer.h"

#include <algorithm>

#include "allocator/plan/clique_bound.h"

namespace thimble::plan {

static_assert(kNotFixed == kNowhere, "offsets of a problem become those of a packing");

ConflictPacker::ConflictPacker(const ConflictProblem& problem) : problem_(problem) {
  sizes_ = problem.sizes;
  fixed_ = problem.fixed;
  fixed_.resize(sizes_.size(), kNowhere);
  lower_bound_ = std::max(problem.lower_bound, CliqueBound(problem));
  unit_ = problem.alignment;
  for (std::int32_t i = 0; i < count(); ++i) {
    std::int64_t load = sizes_[i];
    const std::vector<std::int32_t>& neighbours = Neighbours(i);
    for (const std::int32_t other : neighbours) load += sizes_[other];
    traits_.size.push_back(Log2(sizes_[i]));
    traits_.length.push_back(Log2(neighbours.size() + 1));
    traits_.load.push_back(Log2(load));
    const std::int64_t bottom = std::max<std::int64_t>(fixed_[i], 0);
    lower_bound_ = std::max(lower_bound_, bottom + sizes_[i]);
  }
}

void ConflictPacker::Insert(std::int32_t buffer, std::int64_t offset) {
  const auto at = std::upper_bound(
      placed_.begin(), placed_.end(), offset,
      [](std::int64_t begin, const Placed& placed) { return begin < placed.begin; });
  placed_.insert(at, {offset, offset + sizes_[buffer], buffer});
}

std::int64_t ConflictPacker::FindPlace(std::int32_t buffer, Fit fit) const {
  const std::uint64_t* const row = problem_.conflicts.Row(buffer);
  const std::int64_t size = sizes_[buffer];
  std::int64_t offset = 0;  // all conflicting buffers seen so far end here or below
  std::int64_t best = kNowhere;
  std::int64_t best_room = kNoHeight;
  for (const Placed& placed : placed_) {
    if (((row[placed.buffer / 64] >> (placed.buffer % 64)) & 1) == 0) continue;
    const std::int64_t room = placed.begin - offset;
    if (room >= size && room < best_room) {
      if (fit == Fit::kFirst || room == size) return offset;
      best = offset;
      best_room = room;
    }
    offset = std::max(offset, placed.end);
  }
  return best == kNowhere ? offset : best;
}

bool ConflictPacker::Pack(const std::vector<std::int32_t>& order, Fit fit, std::int64_t cutoff,
                          Budget& budget, Packing& packing) {
  placed_.clear();
  packing.offsets = fixed_;
  packing.height = 0;
  for (std::int32_t i = 0; i < count(); ++i) {
    if (fixed_[i] == kNowhere) continue;
    Insert(i, fixed_[i]);
    packing.height = std::max(packing.height, fixed_[i] + sizes_[i]);
  }
  for (const std::int32_t i : order) {
    const std::int64_t offset = FindPlace(i, fit);
    packing.offsets[i] = offset;
    packing.height = std::max(packing.height, offset + sizes_[i]);
    if (packing.height >= cutoff || !budget.Spend(16 + placed_.size() / 2)) return false;
    Insert(i, offset);
  }
  return true;
}

const std::vector<std::int32_t>& ConflictPacker::Neighbours(std::int32_t buffer) {
  neighbours_.clear();
  const std::uint64_t* const row = problem_.conflicts.Row(buffer);
  for (std::size_t w = 0; w < problem_.conflicts.words_per_row(); ++w) {
    for (std::uint64_t bits = row[w]; bits != 0; bits &= bits - 1) {
      neighbours_.push_back(static_cast<std::int32_t>(64 * w + __builtin_ctzll(bits)));
    }
  }
  return neighbours_;
}

}  // namespace thimble::plan
