// An arena on the small device, for the tests of what callers see.
#pragma once

#include <memory>
#include <vector>

#include "allocator/arena/arena.h"
#include "gtest/gtest.h"
#include "tests/unit/device.h"

namespace thimble {

inline constexpr Bytes kChunk = 16 * kKiB;
inline constexpr StreamId kFirst{1};
inline constexpr StreamId kSecond{2};

class ArenaTest : public testing::Test {
 protected:
  explicit ArenaTest(Bytes device_bytes = 64 * kMiB) : device_(device_bytes) {}

  // Chunks of kChunk unless said otherwise.
  void Make(Bytes limit, ArenaOptions options = {}) {
    options.limit = limit;
    options.chunk_bytes = kChunk;
    auto arena = Arena::Create(options, device_.driver());
    ASSERT_TRUE(arena.ok()) << arena.status();
    arena_ = *std::move(arena);
  }
  void TearDown() override {
    if (arena_ == nullptr) return;
    arena_->CheckInvariants();
    arena_.reset();
    EXPECT_EQ(device_.host().areas(), 0u) << "addresses were not given back";
  }

  Address Allocate(Bytes bytes, StreamId stream = kFirst, std::uint64_t key = 0) {
    const auto address = arena_->Allocate({bytes, 0, stream, key});
    EXPECT_TRUE(address.ok()) << address.status();
    return address.value_or(Address());
  }
  absl::Status TryAllocate(Bytes bytes, StreamId stream = kFirst) {
    return arena_->Allocate({bytes, 0, stream, 0}).status();
  }
  void Free(Address address, StreamId stream = kFirst) {
    const absl::Status status = arena_->Free(address, stream);
    EXPECT_TRUE(status.ok()) << status;
  }
  std::vector<Address> Fill(std::size_t count, Bytes bytes, StreamId stream = kFirst) {
    std::vector<Address> blocks;
    for (std::size_t i = 0; i < count; ++i) blocks.push_back(Allocate(bytes, stream));
    return blocks;
  }
  Bytes Trim(Bytes keep) {
    Bytes released = 0;
    const absl::Status status = arena_->Trim(keep, &released);
    EXPECT_TRUE(status.ok()) << status;
    return released;
  }
  ArenaStats stats() { return arena_->GetStats(); }

  Device device_;
  std::unique_ptr<Arena> arena_;
};

}  // namespace thimble
