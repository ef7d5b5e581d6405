// An arena that learns, and the step that it learns.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/unit/arena_fixture.h"

namespace thimble {

class ArenaPlan : public ArenaTest {
 protected:
  void MakeLearning() {
    ArenaOptions options;
    options.plan = true;
    Make(256 * kChunk, options);
  }

  // A step in which eight blocks are live at once, and two more in turn.
  void Step() {
    ++step_;
    std::vector<Address> blocks;
    for (std::uint64_t key = 1; key <= 8; ++key) blocks.push_back(Ask(key, (key % 3 + 1) * kChunk));
    for (std::uint64_t key = 11; key <= 30; ++key) Free(Ask(key, 2 * kChunk));
    for (const Address block : blocks) Free(block);
  }

  Address Ask(std::uint64_t key, Bytes bytes) {
    const auto address = arena_->Allocate({bytes, 0, kFirst, key, step_});
    EXPECT_TRUE(address.ok()) << address.status();
    return address.value_or(Address());
  }

  std::uint64_t step_ = 0;
};

}  // namespace thimble
