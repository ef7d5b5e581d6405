#include "allocator/plan/ejection.h"

#include <algorithm>

namespace thimble::plan {
namespace {

constexpr std::int64_t kWeightOne = std::int64_t{1} << 16;  // of a buffer as high as the target
constexpr std::int64_t kMaxPenalty = std::int64_t{1} << 10;
constexpr std::int64_t kLeaveAlone = 16;  // factor
// More than 2^17 other costs together; the sum of 2^14 of these still fits in 64 bits.
constexpr std::int64_t kImmovable = std::int64_t{1} << 48;
// Attempts that succeed mostly do so early. If a round of targets reaches none, the next round
// takes twice as long.
constexpr std::uint64_t kFirstLimit = 1'000'000;
constexpr std::uint64_t kLastLimit = std::uint64_t{1} << 40;
// A target lies below the best height by 1/share of the gap between the best and the bound.
constexpr std::int64_t kFirstShare = 16;
constexpr std::int64_t kLastShare = 64;

std::int64_t Root(std::int64_t x) {
  std::int64_t root = 0;
  for (std::int64_t bit = std::int64_t{1} << 31; bit != 0; bit >>= 1) {
    if ((root + bit) * (root + bit) <= x) root += bit;
  }
  return root;
}

template <typename Edge>
bool IsLower(const Edge& a, const Edge& b) {
  return a.offset < b.offset;
}

// Inserts into a sorted list.
template <typename Edge>
void AddEdge(std::vector<Edge>& edges, Edge edge) {
  edges.insert(std::upper_bound(edges.begin(), edges.end(), edge, IsLower<Edge>), edge);
}

template <typename Edge>
void RemoveEdge(std::vector<Edge>& edges, Edge edge) {
  auto at = std::lower_bound(edges.begin(), edges.end(), edge, IsLower<Edge>);
  while (at->buffer != edge.buffer) ++at;
  edges.erase(at);
}

}  // namespace

Ejection::Ejection(Packer& packer, std::uint64_t seed)
    : packer_(packer),
      random_(seed),
      step_share_(kFirstShare),
      attempt_limit_(kFirstLimit),
      costs_(packer.sizes().size()),
      near_begins_(packer.sizes().size()),
      near_ends_(packer.sizes().size()) {}

// Large buffers are hard to place, so they are expensive to eject. Attempts take turns with two
// weightings.
void Ejection::SetWeights() {
  weights_.assign(packer_.sizes().size(), 0);
  for (std::int32_t i = 0; i < packer_.count(); ++i) {
    // No overflow: sizes are at most 2^46, and targets at most 2^60.
    const std::int64_t share = packer_.sizes()[i] * kWeightOne / std::max<std::int64_t>(target_, 1);
    const std::int64_t weight = attempts_ % 2 == 0 ? share : Root(share * kWeightOne);
    weights_[i] = std::clamp<std::int64_t>(weight, 1, kWeightOne);
  }
}

void Ejection::Start(const Packing& best) {
  const std::int64_t gap = (best.height - packer_.lower_bound()) / packer_.unit();
  target_ = best.height - packer_.unit() * std::max<std::int64_t>(1, gap / step_share_);
  start_height_ = best.height;
  attempt_work_ = attempt_limit_;
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
  SortEdges();
  penalties_.assign(offsets_.size(), 1);
  left_alone_until_.assign(offsets_.size(), 0);
}

void Ejection::SortEdges() {
  begins_.clear();
  ends_.clear();
  for (std::int32_t i = 0; i < packer_.count(); ++i) {
    if (offsets_[i] == kNowhere) continue;
    begins_.push_back({offsets_[i], i});
    ends_.push_back({offsets_[i] + packer_.sizes()[i], i});
  }
  std::sort(begins_.begin(), begins_.end(), IsLower<Edge>);
  std::sort(ends_.begin(), ends_.end(), IsLower<Edge>);
}

void Ejection::Insert(std::int32_t buffer, std::int64_t offset) {
  offsets_[buffer] = offset;
  AddEdge(begins_, {offset, buffer});
  AddEdge(ends_, {offset + packer_.sizes()[buffer], buffer});
}

void Ejection::Eject(std::int32_t buffer) {
  RemoveEdge(begins_, {offsets_[buffer], buffer});
  RemoveEdge(ends_, {offsets_[buffer] + packer_.sizes()[buffer], buffer});
  offsets_[buffer] = kNowhere;
  waiting_.push_back(buffer);
}

// Takes the most expensive of a few random ones.
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

void Ejection::FindCosts(std::int32_t buffer) {
  for (const std::int32_t i : neighbours_) costs_[i] = 0;
  neighbours_ = packer_.Neighbours(buffer);
  for (const std::int32_t i : neighbours_) {
    costs_[i] = weights_[i] * penalties_[i];
    if (left_alone_until_[i] > iteration_) costs_[i] *= kLeaveAlone;
    if (packer_.fixed()[i] != kNowhere) costs_[i] = kImmovable;
  }
  // No branch predictor can guess which edges belong to neighbours, so write every edge and advance
  // only past those.
  const auto keep_near = [this](const std::vector<Edge>& edges, std::vector<Cost>& near) {
    near.resize(edges.size());
    std::size_t count = 0;
    for (const Edge& edge : edges) {
      near[count] = {edge.offset, costs_[edge.buffer]};
      count += near[count].cost != 0 ? 1 : 0;
    }
    near.resize(count);
  };
  keep_near(begins_, near_begins_);
  keep_near(ends_, near_ends_);
}

// Only places that touch a neighbour or an end of the range can be cheapest; visits them in rising
// order. The cost of a place is the sum over buffers that begin before its end, less those that end
// before its begin.
std::int64_t Ejection::CheapestPlace(std::int64_t size, std::int64_t& cost) {
  const std::int64_t highest = target_ - size;
  auto begun = near_begins_.begin();  // first that begins at or after the end of the place
  auto ended = near_ends_.begin();    // first that ends after its begin
  auto next = near_begins_.begin();   // the next place ends where this one begins
  std::int64_t overlapping = 0;
  std::int64_t cheapest = 0;
  std::int64_t equals = 0;
  cost = kNoHeight;
  for (std::int64_t place = 0;;) {
    while (begun != near_begins_.end() && begun->offset < place + size) {
      overlapping += (begun++)->cost;
    }
    while (ended != near_ends_.end() && ended->offset <= place) overlapping -= (ended++)->cost;
    if (overlapping < cost) {
      cost = overlapping;
      cheapest = place;
      equals = 1;
    } else if (overlapping == cost && random_.OneIn(++equals)) {
      cheapest = place;
    }
    if (place >= highest) return cheapest;
    while (next != near_begins_.end() && next->offset - size <= place) ++next;
    std::int64_t higher = highest;
    if (ended != near_ends_.end()) higher = std::min(higher, ended->offset);
    if (next != near_begins_.end()) higher = std::min(higher, next->offset - size);
    place = higher;
  }
}

bool Ejection::PlaceOne() {
  constexpr std::int64_t kAlone = 5;
  const std::int32_t buffer = TakeWaiting();
  const std::int64_t size = packer_.sizes()[buffer];
  ++iteration_;
  FindCosts(buffer);
  std::int64_t cost = 0;
  const std::int64_t place = CheapestPlace(size, cost);
  if (cost >= kImmovable) {
    waiting_.push_back(buffer);
    return false;
  }
  if (cost != 0) {
    penalties_[buffer] = std::min(penalties_[buffer] + 1, kMaxPenalty);
    for (const std::int32_t i : neighbours_) {
      if (offsets_[i] == kNowhere) continue;
      if (offsets_[i] < place + size && offsets_[i] + packer_.sizes()[i] > place) Eject(i);
    }
  }
  Insert(buffer, place);
  left_alone_until_[buffer] = iteration_ + kAlone + random_.Below(2 * kAlone);
  return true;
}

void Ejection::Run(std::uint64_t work, Budget& budget, Packing& best) {
  const std::uint64_t end = budget.spent() + work;
  while (best.height > packer_.lower_bound() && budget.spent() < end) {
    if (start_height_ != best.height) Start(best);
    bool possible = true;
    while (!waiting_.empty() && possible && attempt_work_ > 0 && budget.spent() < end) {
      possible = PlaceOne();
      const std::uint64_t cost = 64 + begins_.size() + 4 * neighbours_.size();
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
      step_share_ *= 2;
      if (step_share_ > kLastShare) {
        step_share_ = kFirstShare;
        attempt_limit_ = std::min(attempt_limit_ * 2, kLastLimit);
      }
      start_height_ = kNoHeight;
    }
  }
}

}  // namespace thimble::plan
