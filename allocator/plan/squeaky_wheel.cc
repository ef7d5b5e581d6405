#include "allocator/plan/squeaky_wheel.h"

#include <utility>

namespace thimble::plan {
namespace {

constexpr std::int64_t kPlace = 64;  // the difference between the keys of two adjacent buffers

}  // namespace

void SqueakyWheel::Start(const std::vector<std::int32_t>& order, Fit fit, const Packing& packing) {
  start_order_ = order;
  start_packing_ = packing;
  packing_ = packing;
  fit_ = fit;
  passes_in_vain_ = 0;
  keys_.assign(packer_.sizes().size(), 0);
  std::int64_t key = static_cast<std::int64_t>(order.size()) * kPlace;
  for (const std::int32_t i : order) keys_[i] = key -= kPlace;
}

// Moves every buffer that reached too high forward by about the same share of the order. Now and
// then it shakes all keys a little, because a repeated order teaches nothing.
void SqueakyWheel::Blame() {
  const std::int64_t places = static_cast<std::int64_t>(start_order_.size()) * kPlace;
  const std::int64_t push = places * (5 + random_.Below(60)) / 100;
  const std::int64_t too_high = passes_ % 2 == 0 ? packing_.height - 1 : packer_.lower_bound();
  const bool shake = passes_ % 3 == 2;
  for (const std::int32_t i : start_order_) {
    if (packing_.offsets[i] + packer_.sizes()[i] > too_high) {
      keys_[i] += push / 2 + random_.Below(push + 1);
    }
    if (shake) keys_[i] += random_.Below(places / 32 + 1);
  }
  ++passes_;
}

void SqueakyWheel::Step(Budget& budget, Packing& best) {
  constexpr int kMostInVain = 12;
  Blame();
  std::vector<std::int32_t> order = SortByKey(start_order_, keys_);
  const Fit fit = passes_ % 2 == 0 ? fit_ : Fit::kFirst;
  if (!packer_.Pack(order, fit, kNoHeight, budget, packing_)) return;
  const std::int64_t height = packing_.height;
  if (height < best.height) best = packing_;
  if (height < start_packing_.height) {
    const Packing packing = packing_;
    Start(order, fit_, packing);
  } else if (++passes_in_vain_ > kMostInVain) {
    const std::vector<std::int32_t> again = start_order_;
    const Packing packing = start_packing_;
    Start(again, fit_, packing);
  }
}

}  // namespace thimble::plan
