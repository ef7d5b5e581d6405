// A model of a correct arena as callers see it: which blocks are held, their bytes, and the bytes
// that may not be touched yet. It knows nothing of bins, slabs or aliases.
//
// Contents go through the host driver's real mappings: every block has marks of its own at its
// first and last word and on both sides of every page boundary. A chunk is at least a page, so that
// covers every seam of a stitched block too.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "allocator/base/bytes.h"
#include "allocator/base/ids.h"
#include "allocator/driver/host_driver.h"
#include "gtest/gtest.h"

namespace thimble {

inline constexpr Bytes kPage = 4 * kKiB;

struct Held {
  Bytes bytes = 0;    // usable
  Bytes counted = 0;  // what it adds to the arena's in_use
  StreamId stream{};
  std::uint64_t key = 0;
  std::uint64_t serial = 0;  // of the allocation; decides the contents
};

class Oracle {
 public:
  // `host` must outlive the oracle.
  explicit Oracle(const HostDriver* host) : host_(*host) {}

  // A block was handed out: overlaps none that is held. Writes its marks.
  testing::AssertionResult Add(Address address, const Held& held);
  // The same for a block that has its marks already, because its free was refused.
  testing::AssertionResult Adopt(Address address, const Held& held);
  // A block is about to be freed: its marks must still be there.
  testing::AssertionResult Remove(Address address);

  testing::AssertionResult CheckContents(Address address) const;
  testing::AssertionResult CheckAllContents() const;
  // No physical byte is behind two blocks.
  testing::AssertionResult CheckPhysical() const;

  // --- Work that is still running --------------------------------------------------------------

  // `address` is freed on `stream`, whose work may go on using it: until Finished(stream) the bytes
  // belong to no other block and the mapping stays.
  void StillRunning(Address address, StreamId stream);
  void Finished(StreamId stream);
  // The block just handed out on `stream` has no byte that other streams may still use.
  testing::AssertionResult CheckReuse(Address address, StreamId stream) const;
  testing::AssertionResult CheckStillMapped() const;

  // --- Looking ---------------------------------------------------------------------------------

  bool Holds(Address address) const { return held_.count(address) != 0; }
  const Held& at(Address address) const { return held_.at(address).held; }
  std::size_t size() const { return order_.size(); }
  Address Nth(std::size_t n) const { return order_[n]; }
  Bytes in_use() const { return in_use_; }

 private:
  struct Entry {
    Held held;
    std::size_t position = 0;  // in order_
  };
  struct Ghost {
    Address address;
    Bytes bytes = 0;
    StreamId stream{};
    std::vector<FileRange> physical;
  };

  std::vector<FileRange> PhysicalOf(Address address, Bytes bytes) const;

  const HostDriver& host_;
  std::map<Address, Entry> held_;
  std::vector<Address> order_;  // for picking one at random
  std::vector<Ghost> ghosts_;
  Bytes in_use_ = 0;
};

}  // namespace thimble
