// An arena over host memory, for allocators under test: no GPU, the same core.
#pragma once

#include <string>

#include "allocator/thimble.h"
#include "gtest/gtest.h"

namespace thimble::tf {

class HostArena {
 public:
  explicit HostArena(const std::string& options = "memory:64MiB") {
    EXPECT_EQ(thimble_create(("device:cpu," + options).c_str(), &arena_), THIMBLE_OK)
        << thimble_last_error();
  }
  // Checks the arena's invariants after every test.
  ~HostArena() {
    EXPECT_EQ(thimble_check(arena_), THIMBLE_OK) << thimble_last_error();
    thimble_destroy(arena_);
  }
  HostArena(const HostArena&) = delete;
  HostArena& operator=(const HostArena&) = delete;

  thimble_arena* get() const { return arena_; }

  thimble_stats stats() const {
    thimble_stats stats = {};
    stats.struct_size = sizeof(stats);
    EXPECT_EQ(thimble_get_stats(arena_, &stats), THIMBLE_OK) << thimble_last_error();
    return stats;
  }

 private:
  thimble_arena* arena_ = nullptr;
};

constexpr std::size_t kMiB = std::size_t{1} << 20;

}  // namespace thimble::tf
