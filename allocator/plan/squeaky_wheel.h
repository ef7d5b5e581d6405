// Improves an order: packs, moves the buffers that ended up too high forward, and repeats.
#pragma once

#include <cstdint>
#include <vector>

#include "allocator/plan/orders.h"
#include "allocator/plan/packer.h"

namespace thimble::plan {

class SqueakyWheel {
 public:
  SqueakyWheel(Packer& packer, std::uint64_t seed) : packer_(packer), random_(seed) {}

  // Starts anew from `order` and its packing.
  void Start(const std::vector<std::int32_t>& order, Fit fit, const Packing& packing);

  // One pass. A lower packing becomes `best`. Call Start() first.
  void Step(Budget& budget, Packing& best);

 private:
  void Blame();

  Packer& packer_;
  Random random_;
  Fit fit_ = Fit::kFirst;
  std::int64_t passes_ = 0;
  int passes_in_vain_ = 0;
  std::vector<std::int32_t> start_order_;  // the best so far
  Packing start_packing_;
  std::vector<std::int64_t> keys_;  // by buffer: the larger, the earlier
  Packing packing_;                 // of the last pass
};

}  // namespace thimble::plan
