// How well plans do.
#pragma once

#include <cstdint>

#include "allocator/base/bytes.h"

namespace thimble {

// Counted since the beginning.
struct PlanStats {
  std::uint64_t plans = 0;     // adopted
  std::uint64_t retired = 0;   // dropped because most of it failed
  std::uint64_t stale = 0;     // what was restored and forgotten, because it was of no use
  std::uint64_t seats = 0;     // there are now
  std::uint64_t requests = 0;  // while a plan served
  std::uint64_t hits = 0;      // got their place
  std::uint64_t repeats = 0;   // were where they were the time before; among the hits
  std::uint64_t repairs = 0;   // got a new place, theirs from then on; among the hits
  std::uint64_t misses = 0;    // found their place occupied
  std::uint64_t homeless = 0;  // had no place
  Bytes height = 0;            // of the plan that serves; 0 if none does
  Bytes lower_bound = 0;       // the most bytes these seats took at once
};

}  // namespace thimble
