// Supplies regions to pools that do not use virtual memory, in place of cudaMalloc. Standard types
// only, for the reason given in policy.h.
#pragma once

#include <cstdint>

namespace thimble::bench {

class RegionSource {
 public:
  virtual ~RegionSource() = default;

  // The address of a region of `bytes`, or 0 when the device has no more.
  virtual std::uint64_t Take(std::uint64_t bytes) = 0;

  // Returns a region whole.
  virtual void Give(std::uint64_t address) = 0;
};

}  // namespace thimble::bench
