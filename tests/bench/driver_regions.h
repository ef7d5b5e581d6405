// Regions from a driver: each is one chunk at addresses of its own, like cudaMalloc's. A region
// costs the four equivalent driver calls (Reserve, Create, Map, SetAccess).
#pragma once

#include "absl/container/flat_hash_map.h"
#include "allocator/driver/driver.h"
#include "tests/bench/region_source.h"

namespace thimble::bench {

class DriverRegions final : public RegionSource {
 public:
  // `driver` must outlive this.
  explicit DriverRegions(Driver& driver) : driver_(driver) {}

  std::uint64_t Take(std::uint64_t bytes) override;
  void Give(std::uint64_t address) override;

 private:
  struct Region {
    ChunkHandle chunk;
    Bytes bytes;
  };

  Driver& driver_;
  absl::flat_hash_map<Address, Region> regions_;
};

}  // namespace thimble::bench
