// Host memory for the bytes of blocks that are not on the device.
//
// One memfd, sealed at its size, closed on exec and left out of core dumps: no other process can
// map, shrink or inherit it. Pages are asked for when a range is handed out first, so that a
// machine without memory refuses then, and are kept for the next block.
//
// Not thread-safe, but what it handed out may be read and written by any thread.
#pragma once

#include <unistd.h>

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/base/bytes.h"
#include "allocator/base/range_pool.h"

namespace thimble {

class HostPool {
 public:
  // At most `limit` bytes, a positive multiple of the page size, are handed out at once.
  static absl::StatusOr<std::unique_ptr<HostPool>> Create(Bytes limit);
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
  Bytes limit() const { return limit_; }

 private:
  HostPool(int file, char* base, Bytes limit)
      : process_(getpid()), file_(file), base_(base), limit_(limit), ranges_(limit) {}

  const pid_t process_;
  const int file_;
  char* const base_;
  const Bytes limit_;
  RangePool ranges_;
};

}  // namespace thimble
