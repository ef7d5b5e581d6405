// What every search needs of a problem, whether conflicts are given as lifetimes or as a graph: to
// place buffers one after another in some order, and to name the neighbours of a buffer.
//
// Buffers are neighbours if they may not share bytes. Some may be fixed: they are where they are in
// every packing, and in no order.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "allocator/plan/budget.h"
#include "allocator/plan/orders.h"

namespace thimble::plan {

inline constexpr std::int64_t kNowhere = -1;  // the offset of a buffer that is not placed
inline constexpr std::int64_t kNoHeight = std::numeric_limits<std::int64_t>::max();

struct Packing {
  std::vector<std::int64_t> offsets;
  std::int64_t height = kNoHeight;
};

class Packer {
 public:
  Packer(const Packer&) = delete;
  Packer& operator=(const Packer&) = delete;
  virtual ~Packer() = default;

  // Places the buffers of `order` (all that are not fixed). False as soon as the height is `cutoff`
  // or more, or the budget is over: `packing` then says nothing.
  virtual bool Pack(const std::vector<std::int32_t>& order, Fit fit, std::int64_t cutoff,
                    Budget& budget, Packing& packing) = 0;

  // Valid until the next call.
  virtual const std::vector<std::int32_t>& Neighbours(std::int32_t buffer) = 0;

  std::int32_t count() const { return static_cast<std::int32_t>(sizes_.size()); }
  const std::vector<std::int64_t>& sizes() const { return sizes_; }
  const std::vector<std::int64_t>& fixed() const { return fixed_; }  // kNowhere if not fixed
  std::int64_t lower_bound() const { return lower_bound_; }
  std::int64_t unit() const { return unit_; }  // of all sizes and fixed offsets
  const Traits& traits() const { return traits_; }

 protected:
  // For the constructors of the subclasses, which fill in the rest.
  Packer() = default;

  std::vector<std::int64_t> sizes_;
  std::vector<std::int64_t> fixed_;
  std::int64_t lower_bound_ = 0;
  std::int64_t unit_ = 1;
  Traits traits_;
};

}  // namespace thimble::plan
