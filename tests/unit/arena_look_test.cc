// Statistics, queries and snapshots of an arena whose plan serves: complete, and they change
// nothing.
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/arena_plan_fixture.h"

namespace thimble {
namespace {

class ArenaLook : public ArenaPlan {
 protected:
  struct Seen {
    std::vector<Bytes> offsets;  // where blocks were, in the order of requests
    std::uint64_t hits = 0;
    std::uint64_t driver_calls = 0;
  };

  // 40 steps on an arena of their own; look() is called after every request and every free.
  Seen Train(absl::FunctionRef<void()> look) {
    arena_.reset();
    MakeLearning();
    const Address base = arena_->GetSnapshot().home_base;
    const std::uint64_t calls = device_.calls();
    Seen seen;
    const auto ask = [&](std::uint64_t key, Bytes bytes) {
      const Address address = Ask(key, bytes);
      seen.offsets.push_back(address - base);
      look();
      return address;
    };
    const auto free = [&](Address address) {
      Free(address);
      look();
    };
    for (step_ = 1; step_ <= 40; ++step_) {
      std::vector<Address> blocks;
      for (std::uint64_t key = 1; key <= 8; ++key) {
        blocks.push_back(ask(key, (key % 3 + 1) * kChunk));
      }
      for (std::uint64_t key = 11; key <= 30; ++key) free(ask(key, 2 * kChunk));
      for (const Address block : blocks) free(block);
      arena_->WaitForPlans();
    }
    seen.driver_calls = device_.calls() - calls;
    seen.hits = stats().plan_hits;
    return seen;
  }

  static void ExpectSame(const Seen& watched, const Seen& alone) {
    EXPECT_GT(alone.hits, 500u) << "no plan served";
    EXPECT_EQ(watched.hits, alone.hits);
    EXPECT_EQ(watched.offsets, alone.offsets);
    EXPECT_EQ(watched.driver_calls, alone.driver_calls);
  }
};

TEST_F(ArenaLook, AfterEveryOperationChangesNothing) {
  const Seen alone = Train([] {});
  const Seen watched = Train([this] {
    stats();
    const Snapshot snapshot = arena_->GetSnapshot();
    for (const Snapshot::Piece& piece : snapshot.pieces) {
      const Address address = snapshot.home_base + piece.offset;
      EXPECT_EQ(arena_->Query(address).ok(), piece.state == Snapshot::State::kUsed);
    }
    EXPECT_FALSE(arena_->Free(snapshot.home_base + kUnit, kFirst).ok());
    arena_->CheckInvariants();
  });
  ExpectSame(watched, alone);
}

TEST_F(ArenaLook, FromAnotherThreadChangesNothing) {
  const Seen alone = Train([] {});
  std::atomic<bool> ended{false};
  std::thread poller;
  const Seen watched = Train([&] {
    if (poller.joinable()) return;
    poller = std::thread([&] {
      while (!ended) {
        stats();
        arena_->GetSnapshot();
      }
    });
  });
  ended = true;
  poller.join();
  ExpectSame(watched, alone);
}

// Settle() makes ordinary blocks of blocks in the plan area. Queries answer the same for both.
TEST_F(ArenaLook, BlocksInThePlanAreaLookLikeOrdinaryBlocks) {
  Train([] {});
  const Address first = Ask(1, 2 * kChunk);
  const Address second = Ask(2, 3 * kChunk);
  const Address between = Ask(3, kChunk);
  Free(second);
  const Snapshot floor = arena_->GetSnapshot();
  // A request of another stream settles; it is refused, so that nothing else changes.
  EXPECT_FALSE(arena_->Allocate({1024 * kChunk, 0, kSecond, 0}).ok());
  const Snapshot settled = arena_->GetSnapshot();

  const auto used = [](const Snapshot& snapshot) {
    std::vector<std::vector<std::uint64_t>> pieces;
    for (const Snapshot::Piece& piece : snapshot.pieces) {
      if (piece.state != Snapshot::State::kUsed) continue;
      pieces.push_back({piece.offset, piece.bytes, piece.key, piece.owner});
    }
    return pieces;
  };
  EXPECT_EQ(used(floor), used(settled));
  EXPECT_EQ(floor.stats.in_use, settled.stats.in_use);
  EXPECT_EQ(floor.stats.free_large, settled.stats.free_large);
  EXPECT_EQ(floor.stats.largest_free, settled.stats.largest_free);
  EXPECT_EQ(floor.stats.live_blocks, settled.stats.live_blocks);
  Bytes end = 0;
  for (const Snapshot::Piece& piece : floor.pieces) {
    EXPECT_EQ(piece.offset, end) << "a gap, or an overlap";
    end = piece.offset + piece.bytes;
  }
  Free(first);
  Free(between);
}

}  // namespace
}  // namespace thimble
