// The statistics of an arena, as statistics.def lists them. One sum is always exact (swapped bytes
// are in no term):
//   reserved = in_use + magazines + free_small + free_large + spare
#pragma once

#include <cstdint>

namespace thimble {

struct PlanStats {
#define THIMBLE_PLAN_STATISTIC(name, meaning) std::uint64_t name = 0;
#include "allocator/base/statistics.def"
};

struct SwapStats {
#define THIMBLE_SWAP_STATISTIC(name, meaning) std::uint64_t name = 0;
#include "allocator/base/statistics.def"
};

struct ArenaStats : PlanStats, SwapStats {
#define THIMBLE_STATISTIC(name, meaning) std::uint64_t name = 0;
#define THIMBLE_PLAN_STATISTIC(name, meaning)
#define THIMBLE_SWAP_STATISTIC(name, meaning)
#include "allocator/base/statistics.def"

  bool AddsUp() const { return reserved == in_use + magazines + free_small + free_large + spare; }
};

}  // namespace thimble
