#include "allocator/plan/ejection.h"

#include <algorithm>

namespace thimble::plan {
namespace {

constexpr std::int64_t kWeightOne = std::int64_t{1} << 16;  // of a buffer as high as the target
constexpr std::int64_t kMaxPenalty = std::int64_t{1} << 10;
constexpr std::int64_t kLeaveAlone = 16;  // factor
// More than 2^17 others together, and 2^14 of them still fit in 64 bits.
constexpr std::int64_t kImmovable = std::int64_t{1} << 48;
constexpr std::uint64_t kAttemptWork = 20'000'000;

std::int64_t Root(std::int64_t x) {
  std::int64_t root = 0;
  for (std::int64_t bit = std::int64_t{1} << 31; bit != 0; bit >>= 1) {
    if ((root + bit) * (root + bit) <= x) root += bit;
  }
  return root;
}

}  // namespace

Ejection::Ejection(Packer& packer, std::uint64_t seed) : packer_(packer), random_(seed) {}

// Large buffers are hard to place, so they are dear to eject; by how much, attempts disagree.
void Ejection::SetWeights() {
  weights_.assign(packer_.sizes().size(), 0);
  for (std::int32_t i = 0; i < packer_.count(); ++i) {
    // Sizes are at most 2^46, targets larger than that are 2^60.
    const std::int64_t share = packer_.sizes()[i] * kWeightOne / std::max<std::int64_t>(target_, 1);
    const std::int64_t weight = attempts_ % 2 == 0 ? share : Root(share * kWeightOne);
    weights_[i] = std::clamp<std::int64_t>(weight, 1, kWeightOne);
  }
}

void Ejection::Start(const Packing& best) {
  const std::int64_t gap = (best.height - packer_.lower_bound()) / packer_.unit();
  target_ = best.height - packer_.unit() * std::max<std::int64_t>(1, gap / step_share_);
  start_height_ = best.height;
  attempt_work_ = kAttemptWork;
  iteration_ = 0;
  SetWeights();
  offsets_ = best.offsets;
  waiting_.clear();
  for (std::int32_t i = 0; i < packer_.count(); ++i) {
    if (packer_.fixed()[i] == kNowhere && offsets_[i] + packer_.sizes()[i] > target_) {
      offsets_[i] = kNowhere;
      waiting_.push_back(i);
    }
  }
  penalties_.assign(offsets_.size(), 1);
  left_alone_until_.assign(offsets_.size(), 0);
}

// The dearest of a few at random.
std::int32_t Ejection::TakeWaiting() {
  constexpr std::size_t kTries = 4;
  const std::int64_t count = static_cast<std::int64_t>(waiting_.size());
  std::int64_t chosen = 0;
  std::int64_t most = -1;
  for (std::size_t k = 0; k < std::min(kTries, waiting_.size()); ++k) {
    const std::int64_t index = random_.Below(count);
    const std::int32_t buffer = waiting_[index];
    if (weights_[buffer] * penalties_[buffer] > most) {
      most = weights_[buffer] * penalties_[buffer];
      chosen = index;
    }
  }
  const std::int32_t buffer = waiting_[chosen];
  waiting_[chosen] = waiting_.back();
  waiting_.pop_back();
  return buffer;
}

void Ejection::FindNeighbours(std::int32_t buffer) {
  begins_.clear();
  for (const std::int32_t i : packer_.Neighbours(buffer)) {
    if (offsets_[i] == kNowhere) continue;
    std::int64_t cost = weights_[i] * penalties_[i];
    if (left_alone_until_[i] > iteration_) cost *= kLeaveAlone;
    if (packer_.fixed()[i] != kNowhere) cost = kImmovable;
    begins_.push_back({offsets_[i], offsets_[i] + packer_.sizes()[i], cost, i});
  }
  ends_ = begins_;
  std::sort(begins_.begin(), begins_.end(),
            [](const Neighbour& a, const Neighbour& b) { return a.begin < b.begin; });
  std::sort(ends_.begin(), ends_.end(),
            [](const Neighbour& a, const Neighbour& b) { return a.end < b.end; });
}

// Only places that touch a neighbour, or an end of the range, need to be looked at. What overlaps a
// place is what begins before its end, less what ends before its begin.
std::int64_t Ejection::CheapestPlace(std::int64_t size, std::int64_t& cost) {
  places_ = {0, target_ - size};
  for (const Neighbour& neighbour : begins_) {
    if (neighbour.end + size <= target_) places_.push_back(neighbour.end);
    if (neighbour.begin >= size && neighbour.begin <= target_) {
      places_.push_back(neighbour.begin - size);
    }
  }
  std::sort(places_.begin(), places_.end());
  places_.erase(std::unique(places_.begin(), places_.end()), places_.end());
  std::size_t begun = 0;
  std::size_t ended = 0;
  std::int64_t overlapping = 0;
  std::int64_t cheapest = 0;
  std::int64_t equals = 0;
  cost = kNoHeight;
  for (const std::int64_t place : places_) {
    while (begun < begins_.size() && begins_[begun].begin < place + size) {
      overlapping += begins_[begun++].cost;
    }
    while (ended < ends_.size() && ends_[ended].end <= place) overlapping -= ends_[ended++].cost;
    if (overlapping < cost) {
      cost = overlapping;
      cheapest = place;
      equals = 1;
    } else if (overlapping == cost && random_.OneIn(++equals)) {
      cheapest = place;
    }
  }
  return cheapest;
}

bool Ejection::PlaceOne() {
  constexpr std::int64_t kAlone = 5;
  const std::int32_t buffer = TakeWaiting();
  const std::int64_t size = packer_.sizes()[buffer];
  ++iteration_;
  FindNeighbours(buffer);
  std::int64_t cost = 0;
  const std::int64_t place = CheapestPlace(size, cost);
  if (cost >= kImmovable) {
    waiting_.push_back(buffer);
    return false;
  }
  offsets_[buffer] = place;
  left_alone_until_[buffer] = iteration_ + kAlone + random_.Below(2 * kAlone);
  if (cost == 0) return true;
  penalties_[buffer] = std::min(penalties_[buffer] + 1, kMaxPenalty);
  for (const Neighbour& neighbour : begins_) {
    if (neighbour.begin < place + size && neighbour.end > place) {
      offsets_[neighbour.buffer] = kNowhere;
      waiting_.push_back(neighbour.buffer);
    }
  }
  return true;
}

void Ejection::Run(std::uint64_t work, Budget& budget, Packing& best) {
  constexpr std::int64_t kSmallestStep = 64;
  const std::uint64_t end = budget.spent() + work;
  while (best.height > packer_.lower_bound() && budget.spent() < end) {
    if (start_height_ != best.height) Start(best);
    bool possible = true;
    while (!waiting_.empty() && possible && attempt_work_ > 0 && budget.spent() < end) {
      possible = PlaceOne();
      const std::uint64_t cost = 16 + 16 * begins_.size();
      attempt_work_ -= std::min(attempt_work_, cost);
      if (!budget.Spend(cost)) return;
    }
    if (waiting_.empty()) {
      best.offsets = offsets_;
      best.height = 0;
      for (std::int32_t i = 0; i < packer_.count(); ++i) {
        best.height = std::max(best.height, offsets_[i] + packer_.sizes()[i]);
      }
      step_share_ = std::max<std::int64_t>(1, step_share_ * 2 / 3);
    } else if (!possible || attempt_work_ == 0) {
      ++attempts_;
      step_share_ = step_share_ >= kSmallestStep ? 2 : step_share_ * 2;
      start_height_ = kNoHeight;
    }
  }
}

}  // namespace thimble::plan
