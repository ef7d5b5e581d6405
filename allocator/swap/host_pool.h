// Host memory for blocks that are not on the device.
//
// The pool is one memfd, sealed at its size, closed on exec and left out of core dumps: no other
// process can map, shrink or inherit it. It allocates and pins pages segment by segment, when a
// range first needs them, and keeps them for later blocks. It takes no more pages while the machine
// is short of memory, so that swapping never makes the kernel kill processes.
//
// Not thread-safe, but any thread may read and write the ranges it handed out.
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

  // Hands out at most `limit` bytes at once, a positive multiple of the page size. `driver`, which
  // does the copies, must outlive the pool. `available` returns how much memory the machine has
  // left.
  static absl::StatusOr<std::unique_ptr<HostPool>> Create(
      Bytes limit, Driver* driver, std::function<Bytes()> available = AvailableMemory);
  ~HostPool();
  HostPool(const HostPool&) = delete;
  HostPool& operator=(const HostPool&) = delete;

  // False in a forked child, where the memory is not mapped.
  bool IsOurs() const;

  // nullptr if the pool or the machine has no room, and in a forked child. `bytes` is a positive
  // multiple of the page size.
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

  // Gives the first `bytes` pages. False if the machine has none.
  bool Prepare(Bytes bytes);

  const pid_t process_;
  const int file_;
  char* const base_;
  const Bytes limit_;
  Driver* const driver_;
  const std::function<Bytes()> available_;
  RangePool ranges_;
  Bytes prepared_ = 0;         // this many first bytes have pages
  std::vector<void*> pinned_;  // segments; those that the driver refused to pin are used unpinned
};

}  // namespace thimble
