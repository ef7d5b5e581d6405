// The figures of an arena. One sum is exact at every moment (what is swapped is in none of them):
//   reserved = in_use + magazines + free_small + free_large + spare
#pragma once

#include <cstdint>

#include "allocator/base/bytes.h"
#include "allocator/plan/plan_stats.h"

namespace thimble {

struct SwapStats {
  Bytes on_host = 0;            // bytes of blocks in use that are not on the device
  Bytes out_bytes = 0;          // that left it so far
  Bytes in_bytes = 0;           // and came back
  Bytes late_bytes = 0;         // of these, when an op waited for them already
  std::uint64_t wait_ns = 0;    // that ops and requests waited for copies
  std::uint64_t out_ns = 0;     // that copies out took
  std::uint64_t in_ns = 0;      // and copies in
  Bytes goal = 0;               // no more is reserved if swapping can help it
  std::uint64_t host_full = 0;  // how often the host had no room for more
};

struct ArenaStats {
  Bytes in_use = 0;      // held by callers, on the device
  Bytes magazines = 0;   // small blocks cached by threads
  Bytes free_small = 0;  // free in slabs
  Bytes free_large = 0;  // free elsewhere
  Bytes spare = 0;       // chunks that the driver refused to take back
  Bytes reserved = 0;    // taken from the driver
  Bytes vacant = 0;      // home addresses whose memory was given back
  Bytes limit = 0;
  Bytes peak_in_use = 0;  // magazines count as in use
  Bytes peak_reserved = 0;
  Bytes largest_free = 0;
  Bytes largest_request = 0;
  Bytes alias_active = 0;  // addresses of aliases in use
  Bytes alias_idle = 0;    // addresses of cached ones
  std::uint64_t live_blocks = 0;
  std::uint64_t allocations = 0;
  std::uint64_t stitches = 0;
  std::uint64_t stitch_hits = 0;
  std::uint64_t out_of_memory = 0;
  PlanStats plan;
  SwapStats swap;

  bool AddsUp() const { return reserved == in_use + magazines + free_small + free_large + spare; }
};

}  // namespace thimble
