// When to take memory from the driver, how much, and in chunks of which size. Pure functions; the
// numbers were chosen by replaying recorded traces (docs/001-stitching.md).
#pragma once

#include <algorithm>

#include "allocator/base/bytes.h"

namespace thimble {

// On a miss, new contiguous memory is preferred to a stitch as long as the arena holds no more than
// this above what was in use at the peak: it is one seam less, and the next step will need it too.
constexpr Bytes AllowedSlack(Bytes peak_in_use) {
  return std::max(peak_in_use / 100, std::min(peak_in_use / 50, 16 * kMiB));
}

// So close to the limit, every piece counts: the ends of chunks are used before whole ones.
constexpr bool IsNearLimit(Bytes reserved, Bytes limit, Bytes request) {
  return limit - std::min(reserved, limit) < std::max(request, limit / 32);
}

// Chunks this much larger than a slot cost one driver call instead of eight, but are harder to
// stitch. They are used for large growth while most of the limit is still free.
inline constexpr Bytes kLargeChunkSlots = 8;
constexpr bool UseLargeChunks(Bytes growth, Bytes reserved, Bytes limit, Bytes slot_bytes) {
  return growth >= 32 * slot_bytes && reserved + growth <= limit / 2;
}

}  // namespace thimble
