// When to take memory from the driver, how much, and in chunks of which size. Pure functions; the
// numbers were chosen by replaying traces (docs/001-stitching.md).
#pragma once

#include <algorithm>
#include <cstdint>

#include "allocator/base/bytes.h"

namespace thimble {

// On a miss, new contiguous memory is preferred to a stitch as long as the arena holds no more than
// this above what was in use at the peak: it is one seam less, and the next step will need it too.
// Work that repeats itself stops stitching after a few dozen aliases. Work that does not would
// stitch for ever: the more it had to, the more room it gets instead, up to three percent.
constexpr Bytes AllowedSlack(Bytes peak_in_use, std::uint64_t aliases_built) {
  constexpr std::uint64_t kAliasesPerPercent = 256;
  const Bytes percent = 1 + std::min<std::uint64_t>(2, aliases_built / kAliasesPerPercent);
  return std::max(peak_in_use / 100 * percent, std::min(peak_in_use / 50, 16 * kMiB));
}

// Chunks this much larger than a slot cost one driver call instead of eight, but are harder to
// stitch. How much of `growth` is taken in them: only where very much is taken at once, and never
// more than the first half of the limit.
inline constexpr Bytes kLargeChunkSlots = 8;
constexpr Bytes InLargeChunks(Bytes growth, Bytes reserved, Bytes limit, Bytes slot_bytes) {
  if (growth < 256 * slot_bytes || reserved >= limit / 2) return 0;
  return AlignDown(std::min(growth, limit / 2 - reserved), kLargeChunkSlots * slot_bytes);
}

}  // namespace thimble
