#include "tests/bench/driver_regions.h"

#include "allocator/base/check.h"

namespace thimble::bench {

std::uint64_t DriverRegions::Take(std::uint64_t bytes) {
  const Bytes granularity = driver_.properties().granularity;
  bytes = RoundUp(bytes, granularity);
  const absl::StatusOr<ChunkHandle> chunk = driver_.Create(bytes);
  if (!chunk.ok()) return 0;
  const absl::StatusOr<Address> address = driver_.Reserve(bytes, granularity);
  THIMBLE_CHECK(address.ok(), "the machine has addresses for what the device has bytes for");
  THIMBLE_CHECK(driver_.Map(*address, bytes, *chunk).ok(), "a new region can be mapped");
  THIMBLE_CHECK(driver_.SetAccess(*address, bytes).ok(), "a mapped region can be opened");
  regions_.emplace(*address, Region{*chunk, bytes});
  return address->value();
}

void DriverRegions::Give(std::uint64_t given) {
  const Address address(given);
  const auto it = regions_.find(address);
  THIMBLE_CHECK(it != regions_.end(), "only what was taken is given back");
  const Region region = it->second;
  regions_.erase(it);
  THIMBLE_CHECK(driver_.Unmap(address, region.bytes).ok(), "a mapped region can be unmapped");
  THIMBLE_CHECK(driver_.Destroy(region.chunk).ok(), "a region's chunk can be destroyed");
  THIMBLE_CHECK(driver_.Release(address, region.bytes).ok(), "an empty region can be released");
}

}  // namespace thimble::bench
