// One arena over the host driver with two fault drivers in between, and the oracle that knows which
// blocks it must still hold after a fault.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "allocator/arena/arena.h"
#include "allocator/driver/host_driver.h"
#include "tests/drivers/fault_driver.h"
#include "tests/model/oracle.h"
#include "tests/workloads/random.h"

namespace thimble {

class Scene {
 public:
  static constexpr Bytes kChunk = 16 * kKiB;

  // `options.limit` is in chunks here; the device has twice as many.
  explicit Scene(ArenaOptions options);

  // Creates the arena on demand, because creation can fail, too.
  absl::Status Open();
  void Close() { arena_.reset(); }
  Arena& arena() { return *arena_; }
  bool is_open() const { return arena_ != nullptr; }

  // Calls of callers, checked by the oracle. A Free() that fails leaves the block held.
  absl::StatusOr<Address> Allocate(Bytes bytes, StreamId stream = StreamId{},
                                   Bytes alignment = kUnit);
  absl::Status Free(Address address, StreamId stream = StreamId{});

  // For preparations, which must succeed. Blocks are named by their index in blocks().
  void Fill(std::size_t count, Bytes bytes, StreamId stream = StreamId{});
  void FreeEverySecond(StreamId stream = StreamId{});
  const std::vector<Address>& blocks() const { return blocks_; }

  // Two faults: the second is counted among the calls that the first let through.
  FaultDriver& faults() { return outer_; }
  FaultDriver& second_faults() { return inner_; }
  void Heal();

  Oracle& oracle() { return oracle_; }
  ArenaStats stats() { return arena_->GetStats(); }

  // Every live byte, every invariant, the ladder of statistics, and the oracle's sum.
  testing::AssertionResult IsSound();
  // 100 ordinary operations; all must succeed.
  testing::AssertionResult Works();
  // When all blocks are freed and the arena is trimmed, the device has every byte again, also those
  // that it once refused to take.
  testing::AssertionResult TrimsToNothing();
  // The arena is gone and the device is as new.
  testing::AssertionResult GaveAllBack();

 private:
  Bytes UsedOfDevice();

  const ArenaOptions options_;
  std::unique_ptr<HostDriver> host_;
  FaultDriver inner_;
  FaultDriver outer_;
  std::unique_ptr<Arena> arena_;
  Oracle oracle_;
  std::vector<Address> blocks_;
  std::uint64_t serial_ = 0;
};

// Everything that host drivers have open in this process.
struct ProcessResources {
  std::size_t files = 0;
  std::size_t mappings = 0;
  bool operator==(const ProcessResources& other) const {
    return files == other.files && mappings == other.mappings;
  }
};
ProcessResources CountResources();

}  // namespace thimble
