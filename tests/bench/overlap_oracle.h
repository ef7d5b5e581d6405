// Finds blocks that share a byte. It shares no code with any policy: it gets addresses, and asks
// the device which physical bytes are behind them.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "tests/bench/device.h"
#include "tests/bench/subject.h"
#include "tests/bench/workload.h"

namespace thimble::bench {

// Half-open intervals that do not overlap.
class DisjointIntervals {
 public:
  // False, and nothing is added, if [begin, begin + bytes) meets one that is there.
  bool Add(std::uint64_t begin, std::uint64_t bytes);
  void Remove(std::uint64_t begin) { ends_.erase(begin); }

 private:
  absl::btree_map<std::uint64_t, std::uint64_t> ends_;  // by begin
};

class OverlapOracle {
 public:
  // `device` must outlive the oracle.
  explicit OverlapOracle(const Device& device) : device_(device) {}

  // A block is handed out. An address range or a physical range that another live block has, or
  // bytes that are not mapped, count as one error each.
  void Allocated(Address address, Bytes bytes);

  // It is freed; call this before the policy's Free, as long as the device still knows it.
  void Freed(Address address);

  std::uint64_t errors() const { return errors_; }

 private:
  const Device& device_;
  DisjointIntervals addresses_;
  DisjointIntervals physical_;
  absl::flat_hash_map<Address, std::vector<Bytes>> physical_begins_;  // of each live block
  std::uint64_t errors_ = 0;
};

// Errors in `replays` replays on a fresh policy, or until it is out of memory.
std::uint64_t CountOverlaps(const Workload& workload, PolicyKind kind, Bytes capacity,
                            Sizing sizing, int replays);

}  // namespace thimble::bench
