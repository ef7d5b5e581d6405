// Splits large blocks into parts that leave one by one. Where the bus is the bottleneck, a part of
// a block may leave in time although the whole cannot.
#pragma once

#include "allocator/offline/schedule/problem.h"

namespace thimble::schedule {

inline constexpr std::int64_t kLargestPart = std::int64_t{256} << 20;

// The same problem with every block above kLargestPart cut into parts of about equal size, with
// borders at multiples of 2 MiB.
Problem SplitBlocks(const Problem& problem);

}  // namespace thimble::schedule
