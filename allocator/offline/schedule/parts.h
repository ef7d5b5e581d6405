// Large blocks as several parts that leave one by one: where the bus is the limit, a part of a
// block is gone in time where the whole is not.
#pragma once

#include "allocator/offline/schedule/problem.h"

namespace thimble::schedule {

inline constexpr std::int64_t kLargestPart = std::int64_t{256} << 20;

// The same problem with every block that is larger than that in parts of about the same size, with
// borders at multiples of 2 MiB.
Problem SplitBlocks(const Problem& problem);

}  // namespace thimble::schedule
