// CnMem: NVIDIA's pool (github.com/NVIDIA/cnmem), the one SmartPool was measured against. Written
// from its published code: sizes rounded up to 512 B, best fit over the free blocks in address
// order (the first of the smallest), the rest of a block split off whatever its size, free
// neighbours merged at once but never across two regions, regions never given back.
//
// Simpler than the original, in its favour:
//   - It searches linked lists; here the same block is found through an index. Addresses are the
//     same, ns_per_op flatters it.
//   - Streams share the root pool without waiting; CnMem splits memory by stream and synchronises.
//   - A region made by growth takes exactly the bytes asked for, and the rest of its last 2 MiB
//   page
//     serves the next one; cudaMalloc would round up.
#include <vector>

#include "allocator/base/check.h"
#include "allocator/driver/driver.h"
#include "tests/bench/block_list.h"
#include "tests/bench/peers.h"

namespace thimble::bench {
namespace {

constexpr Bytes kRounding = 512;

class CnmemPolicy final : public Policy {
 public:
  CnmemPolicy(Driver& driver, bool growth)
      : driver_(driver),
        growth_(growth),
        range_bytes_(RoundDown(driver.properties().total_bytes, driver.properties().granularity)) {
    const auto range = driver.Reserve(range_bytes_, driver.properties().granularity);
    THIMBLE_CHECK(range.ok(), "the machine has addresses for the capacity");
    range_ = *range;
    if (!growth_) THIMBLE_CHECK(AddRegion(range_bytes_) != nullptr, "all memory is free at first");
  }

  std::uint64_t Allocate(std::uint64_t bytes, std::uint64_t /*stream*/,
                         std::uint64_t /*key*/) override {
    bytes = RoundUp(bytes, kRounding);
    const auto fit = blocks_.BestFit(bytes);
    Block* block = fit != blocks_.free_blocks().end() ? *fit : nullptr;
    if (block == nullptr && growth_) block = AddRegion(bytes);
    return block == nullptr ? 0 : blocks_.Take(block, bytes)->address.value();
  }

  void Free(std::uint64_t address, std::uint64_t /*stream*/) override {
    blocks_.Give(blocks_.Find(Address(address)));
  }

 private:
  // Backs the next `bytes` of the range; what the last page has left over comes first.
  Block* AddRegion(Bytes bytes) {
    const Bytes needed = RoundUp(used_bytes_ + bytes, driver_.properties().granularity);
    if (bytes > range_bytes_ || needed > range_bytes_) return nullptr;
    if (needed > mapped_bytes_) {
      const Address address = range_ + mapped_bytes_;
      const Bytes more = needed - mapped_bytes_;
      const absl::StatusOr<ChunkHandle> chunk = driver_.Create(more);
      if (!chunk.ok()) return nullptr;
      THIMBLE_CHECK(driver_.Map(address, more, *chunk).ok(), "reserved addresses can be mapped");
      THIMBLE_CHECK(driver_.SetAccess(address, more).ok(), "a mapped chunk can be opened");
      mapped_bytes_ = needed;
    }
    Block* block = blocks_.AddSegment(range_ + used_bytes_, bytes, BlockState::kFree);
    used_bytes_ += bytes;
    return block;
  }

  Driver& driver_;
  const bool growth_;
  const Bytes range_bytes_;
  Address range_;
  Bytes used_bytes_ = 0;
  Bytes mapped_bytes_ = 0;
  BlockList blocks_;
};

}  // namespace

std::unique_ptr<Policy> MakeCnmem(Driver& driver, bool growth) {
  return std::make_unique<CnmemPolicy>(driver, growth);
}

}  // namespace thimble::bench
