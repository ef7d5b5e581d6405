// Improves an order: pack, see which buffers ended up too high, let them come earlier, repeat.
#pragma once

#include <cstdint>
#include <vector>

#include "allocator/plan/orders.h"
#include "allocator/plan/packer.h"

namespace thimble::plan {

class SqueakyWheel {
 public:
  SqueakyWheel(Packer& packer, std::uint64_t seed) : packer_(packer), random_(seed) {}

  // Starts anew from `order` and the packing that it gave.
  void Start(const std::vector<std::int32_t>& order, Fit fit, const Packing& packing);

  // One pass. Whatever is lower than `best` becomes `best`. Start() comes first.
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
