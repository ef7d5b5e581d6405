// Host memory for the bytes of blocks that are not on the device.
//
// One memfd, sealed at its size, closed on exec and left out of core dumps: no other process can
// map, shrink or inherit it. Its pages are asked for and pinned segment by segment, when a range is
// handed out that needs them, and kept for the next block. While the machine is about to run out of
// memory it gets no more: swapping must not be what the kernel kills processes for.
//
// Not thread-safe, but what it handed out may be read and written by any thread.
#pragma once

#include <unistd.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/base/bytes.h"
#include "allocator/base/machine.h"
#include "allocator/base/range_pool.h"
#include "allocator/driver/driver.h"

namespace thimble {

class HostPool {
 public:
  static constexpr Bytes kSegment = 64 * kMiB;
  static constexpr Bytes kLeftToOthers = 512 * kMiB;  // of the machine

  // At most `limit` bytes, a positive multiple of the page size, are handed out at once. `driver`,
  // which copies, must outlive the pool. `available` says what the machine has left.
  static absl::StatusOr<std::unique_ptr<HostPool>> Create(
      Bytes limit, Driver* driver, std::function<Bytes()> available = AvailableMemory);
  ~HostPool();
  HostPool(const HostPool&) = delete;
  HostPool& operator=(const HostPool&) = delete;

  // False in a child that was forked: the memory is its parent's, and not even mapped here.
  bool IsOurs() const;

  // nullptr if the pool or the machine has no room, and in a child. `bytes` is a positive multiple
  // of the page size.
  void* Take(Bytes bytes);
  void Give(void* host, Bytes bytes);

  Bytes taken_bytes() const { return ranges_.taken_bytes(); }

 private:
  HostPool(int file, char* base, Bytes limit, Driver* driver, std::function<Bytes()> available)
      : process_(getpid()),
        file_(file),
        base_(base),
        limit_(limit),
        driver_(driver),
        available_(std::move(available)),
        ranges_(limit) {}

  // Whether the first `bytes` have pages now.
  bool Prepare(Bytes bytes);

  const pid_t process_;
  const int file_;
  char* const base_;
  const Bytes limit_;
  Driver* const driver_;
  const std::function<Bytes()> available_;
  RangePool ranges_;
  Bytes prepared_ = 0;         // from the beginning
  std::vector<void*> pinned_;  // segments; one that the driver refused serves as it is
};

}  // namespace thimble
