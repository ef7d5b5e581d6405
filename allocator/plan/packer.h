// All that a search needs of a problem, whether its conflicts are lifetimes or a graph: a Packer
// places buffers one after another in a given order, and names the neighbours of a buffer.
//
// Buffers are neighbours if they may not share bytes. Fixed buffers have the same offset in every
// packing and are in no order.
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

  // Places the buffers of `order` (all that are not fixed). Returns false as soon as the height
  // reaches `cutoff` or the budget is over; `packing` is then meaningless.
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
  // Constructors of subclasses set the members.
  Packer() = default;

  std::vector<std::int64_t> sizes_;
  std::vector<std::int64_t> fixed_;
  std::int64_t lower_bound_ = 0;
  std::int64_t unit_ = 1;
  Traits traits_;
};

}  // namespace thimble::plan
