// An arena whose idle blocks leave the device: their contents and addresses, and which blocks stay.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/arena_fixture.h"

namespace thimble {
namespace {

constexpr Bytes kBlock = 8 * kChunk;

class ArenaSwap : public ArenaTest {
 protected:
  void MakeSwapping(Bytes limit, Bytes host_limit = 0, ArenaOptions options = {}) {
    options.swap = SwapMode::kAuto;
    options.host_limit = host_limit;
    Make(limit, options);
  }

  // A block with unique contents that an op has made and that may leave from now on.
  Address Made(std::uint8_t contents, Bytes bytes = kBlock) {
    const Address block = Allocate(bytes);
    if (!block) return block;
    std::memset(ToPointer(block), contents, bytes);
    EXPECT_TRUE(arena_->Unpin({}, {block}, kFirst, false).ok());
    return block;
  }
  absl::Status Pin(Address block) { return arena_->Pin({block}, OpName()); }
  void Unpin(Address block) { EXPECT_TRUE(arena_->Unpin({block}, {}, kFirst, false).ok()); }

  // As an op would see it.
  std::uint8_t ContentsOf(Address block, Bytes bytes = kBlock) {
    EXPECT_TRUE(Pin(block).ok());
    const std::uint8_t first = ByteAt(block);
    for (Bytes at = 0; at < bytes; at += kGranule) EXPECT_EQ(ByteAt(block + at), first);
    EXPECT_EQ(ByteAt(block + bytes - 1), first);
    Unpin(block);
    return first;
  }
};

TEST_F(ArenaSwap, CallersHoldMoreThanTheDeviceHas) {
  MakeSwapping(4 * kBlock);
  std::vector<Address> blocks;
  for (std::uint8_t i = 0; i < 16; ++i) blocks.push_back(Made(i));
  EXPECT_EQ(stats().swapped, 12 * kBlock);
  EXPECT_EQ(stats().in_use, 4 * kBlock);
  for (int round = 0; round < 3; ++round) {
    for (std::uint8_t i = 0; i < 16; ++i) EXPECT_EQ(ContentsOf(blocks[i]), i);
  }
  EXPECT_LE(stats().peak_reserved, 4 * kBlock);
  EXPECT_LE(device_.used(), 4 * kBlock);
  for (const Address block : blocks) Free(block);
  EXPECT_EQ(stats().swapped, 0u);
}

TEST_F(ArenaSwap, TheBlockThatWasUsedLongestAgoLeaves) {
  MakeSwapping(3 * kBlock);
  const Address first = Made(1);
  const Address second = Made(2);
  Made(3);
  EXPECT_EQ(ContentsOf(first), 1);  // used again
  const Bytes out = stats().swap_out_bytes;
  Made(4);
  EXPECT_EQ(stats().swap_out_bytes - out, kBlock);
  const Bytes in = stats().swap_in_bytes;
  EXPECT_EQ(ContentsOf(first), 1);
  EXPECT_EQ(stats().swap_in_bytes, in) << "it was there";
  EXPECT_EQ(ContentsOf(second), 2);
  EXPECT_EQ(stats().swap_in_bytes - in, kBlock);
}

// Six blocks in turn, with room for four: those that were used longest ago are needed next, and
// would all be fetched in every round. A good forecast fetches less than half of them.
TEST_F(ArenaSwap, RepeatedUsesAreForeseen) {
  MakeSwapping(4 * kBlock);
  std::vector<Address> blocks;
  for (std::uint8_t i = 0; i < 6; ++i) blocks.push_back(Made(i));
  Bytes fetched = 0;
  for (std::uint64_t step = 1; step <= 20; ++step) {
    const Bytes before = stats().swap_in_bytes;
    for (std::uint64_t i = 0; i < 6; ++i) {
      ASSERT_TRUE(arena_->Pin({blocks[i]}, {/*key=*/1 + i, step}).ok());
      EXPECT_EQ(ByteAt(blocks[i]), i);
      Unpin(blocks[i]);
    }
    fetched = stats().swap_in_bytes - before;
  }
  EXPECT_LE(fetched, 3 * kBlock);
}

TEST_F(ArenaSwap, BlocksNeededSoonAreThereInTime) {
  constexpr std::uint64_t kEvery = 50;  // ops; those between use nothing
  MakeSwapping(5 * kBlock);
  std::vector<Address> blocks;
  for (std::uint8_t i = 0; i < 8; ++i) blocks.push_back(Made(i));
  SwapStats before;
  for (std::uint64_t step = 1; step <= 12; ++step) {
    before = stats();
    for (std::uint64_t op = 0; op < 8 * kEvery; ++op) {
      std::vector<Address> used;
      if (op % kEvery == 0) used.push_back(blocks[op / kEvery]);
      ASSERT_TRUE(arena_->Pin(used, {/*key=*/1 + op, step}).ok());
      for (const Address block : used) EXPECT_EQ(ByteAt(block), op / kEvery);
      ASSERT_TRUE(arena_->Unpin(used, {}, kFirst, false).ok());
      if (op % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  const SwapStats after = stats();
  const Bytes fetched = after.swap_in_bytes - before.swap_in_bytes;
  EXPECT_GE(fetched, 3 * kBlock);
  EXPECT_LE(2 * (after.swap_late_bytes - before.swap_late_bytes), fetched)
      << "most came ahead of need";
}

TEST_F(ArenaSwap, PinnedBlocksStay) {
  MakeSwapping(2 * kBlock);
  const Address first = Made(1);
  const Address second = Made(2);
  ASSERT_TRUE(arena_->Pin({first, second}, OpName()).ok());
  EXPECT_EQ(TryAllocate(kBlock).code(), absl::StatusCode::kResourceExhausted);
  ASSERT_TRUE(Pin(first).ok());  // by another op, too
  Unpin(first);
  EXPECT_EQ(TryAllocate(kBlock).code(), absl::StatusCode::kResourceExhausted);
  Unpin(second);
  Free(Allocate(kBlock));
  Unpin(first);
  EXPECT_EQ(ContentsOf(first), 1);
  EXPECT_EQ(ContentsOf(second), 2);
}

TEST_F(ArenaSwap, BlocksThatNoOpHasNamedStay) {
  MakeSwapping(2 * kBlock);
  const Address filled = Allocate(kBlock);  // an op is at work on it, unseen
  Allocate(kBlock);
  EXPECT_EQ(TryAllocate(kBlock).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(stats().swap_out_bytes, 0u);
  Free(filled);
}

TEST_F(ArenaSwap, ExposedBlocksComeBackAndStay) {
  MakeSwapping(2 * kBlock);
  const Address first = Made(1);
  Made(2);
  Made(3);
  ASSERT_EQ(stats().swapped, kBlock);
  ASSERT_TRUE(arena_->Expose({first}).ok());
  EXPECT_EQ(ByteAt(first), 1);
  for (std::uint8_t i = 4; i < 10; ++i) Made(i);
  EXPECT_EQ(ByteAt(first), 1) << "an access to evicted memory would be a segmentation fault";
}

TEST_F(ArenaSwap, PinningIsAllOrNothing) {
  MakeSwapping(2 * kBlock);
  const std::vector<Address> blocks = {Made(1), Made(2), Made(3)};
  EXPECT_EQ(arena_->Pin(blocks, OpName()).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(arena_->LastOom().requested, kBlock);
  EXPECT_EQ(arena_->LastOom().in_use, 2 * kBlock) << "what is on the host is not";
  EXPECT_EQ(stats().out_of_memory, 1u);
  arena_->CheckInvariants();
  for (std::uint8_t i = 0; i < 3; ++i) EXPECT_EQ(ContentsOf(blocks[i]), i + 1);
}

TEST_F(ArenaSwap, SmallAndForeignAddressesAreIgnored) {
  MakeSwapping(4 * kBlock);
  const Address small = Allocate(kChunk / 2);
  EXPECT_TRUE(
      arena_->Pin({small, Address(), Address(1), Address(~std::uint64_t{0})}, OpName()).ok());
  EXPECT_TRUE(arena_
                  ->Unpin({small, Address(), Address(1), Address(~std::uint64_t{0})}, {small},
                          kFirst, false)
                  .ok());
  EXPECT_TRUE(arena_->Expose({small, Address(3)}).ok());
  Free(small);
}

TEST_F(ArenaSwap, ABlockCanBeFreedWhereverItsBytesAre) {
  MakeSwapping(2 * kBlock);
  std::vector<Address> blocks;
  for (std::uint8_t i = 0; i < 6; ++i) blocks.push_back(Made(i));
  arena_->CheckInvariants();
  for (const std::size_t i : {0, 5, 2, 4, 1, 3}) {
    Free(blocks[i]);
    arena_->CheckInvariants();
  }
  EXPECT_EQ(stats().in_use, 0u);
  EXPECT_THAT(MessageOf(arena_->Free(blocks[0], kFirst)), testing::HasSubstr("free already"));
}

// A variable that is assigned loses its buffer while the op that assigns it has it pinned.
TEST_F(ArenaSwap, ABlockMayBeFreedWhileItIsPinned) {
  MakeSwapping(2 * kBlock);
  const Address first = Made(1);
  ASSERT_TRUE(Pin(first).ok());
  Free(first);
  const Address second = Made(2);
  ASSERT_EQ(second, first) << "another block has its address now";
  ASSERT_TRUE(Pin(second).ok());
  Unpin(first);  // the op that had pinned the first one ends
  Made(3);
  EXPECT_EQ(TryAllocate(kBlock).code(), absl::StatusCode::kOk) << "the third leaves";
  EXPECT_EQ(ByteAt(second), 2) << "it is still pinned";
  Unpin(second);
  EXPECT_THAT(MessageOf(arena_->Unpin({second}, {}, kFirst, false)),
              testing::HasSubstr("is not pinned"));
}

TEST_F(ArenaSwap, TheEndOfAnOpDoesNotNameTheBlockThatHasTheAddressNow) {
  MakeSwapping(2 * kBlock);
  const Address first = Made(1);
  ASSERT_TRUE(Pin(first).ok());
  Free(first);
  const Address filled = Allocate(kBlock);  // another op is at work on it, unseen
  ASSERT_EQ(filled, first);
  Unpin(first);
  Made(2);
  Made(3);
  EXPECT_EQ(stats().swapped, kBlock) << "the second left, not what is being filled";
  std::memset(ToPointer(filled), 4, kBlock);
}

TEST_F(ArenaSwap, WithoutRoomOnTheHostMemoryIsShort) {
  MakeSwapping(2 * kBlock, /*host_limit=*/kBlock);
  const Address first = Made(1);
  Made(2);
  Made(3);
  EXPECT_EQ(TryAllocate(kBlock).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(stats().swap_host_full, 1u);
  Free(first);
  Free(Allocate(kBlock));
}

TEST_F(ArenaSwap, NoMoreIsReservedThanTheGoal) {
  ArenaOptions options;
  options.swap_limit = 3 * kBlock + kChunk / 2;
  MakeSwapping(8 * kBlock, /*host_limit=*/64 * kBlock, options);
  std::vector<Address> blocks;
  for (std::uint8_t i = 0; i < 8; ++i) blocks.push_back(Made(i));
  EXPECT_EQ(stats().swap_goal, 3 * kBlock);
  EXPECT_EQ(stats().peak_reserved, 3 * kBlock);
  EXPECT_EQ(stats().swapped, 5 * kBlock);
  for (std::uint8_t i = 0; i < 8; ++i) EXPECT_EQ(ContentsOf(blocks[i]), i);
  EXPECT_EQ(stats().peak_reserved, 3 * kBlock);
}

TEST_F(ArenaSwap, MemoryExceedsTheGoalOnlyIfItMustAndReturnsToIt) {
  ArenaOptions options;
  options.swap_limit = 2 * kBlock;
  MakeSwapping(8 * kBlock, /*host_limit=*/64 * kBlock, options);
  std::vector<Address> blocks;
  for (std::uint8_t i = 0; i < 4; ++i) blocks.push_back(Made(i));
  ASSERT_TRUE(arena_->Pin(blocks, OpName()).ok()) << "an op that needs all of them";
  EXPECT_EQ(stats().reserved, 4 * kBlock);
  for (std::uint8_t i = 0; i < 4; ++i) EXPECT_EQ(ByteAt(blocks[i]), i);
  ASSERT_TRUE(arena_->Unpin(blocks, {}, kFirst, false).ok());
  for (int i = 0; i < 1000 && stats().reserved > 2 * kBlock; ++i) {  // other ops
    ASSERT_TRUE(arena_->Pin({}, OpName()).ok());
    ASSERT_TRUE(arena_->Unpin({}, {}, kFirst, false).ok());
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(stats().reserved, 2 * kBlock) << "given back, by a thread of its own";
  for (std::uint8_t i = 0; i < 4; ++i) EXPECT_EQ(ContentsOf(blocks[i]), i);
  arena_->CheckInvariants();
}

// Rounds are a tenth of a second at least: three to learn, some to search.
TEST_F(ArenaSwap, AnAllowedSlowdownIsUsedToNeedLess) {
  ArenaOptions options;
  options.swap_slowdown = 10'000'000;
  MakeSwapping(8 * kBlock, /*host_limit=*/64 * kBlock, options);
  std::vector<Address> blocks;
  for (std::uint8_t i = 0; i < 8; ++i) blocks.push_back(Made(i));
  EXPECT_EQ(stats().reserved, 8 * kBlock);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (stats().reserved > 4 * kBlock && std::chrono::steady_clock::now() < end) {
    for (std::uint8_t i = 0; i < 8; ++i) {
      EXPECT_EQ(ContentsOf(blocks[i]), i);
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }
  EXPECT_LE(stats().reserved, 4 * kBlock);
  EXPECT_LE(stats().swap_goal, 4 * kBlock);
  for (std::uint8_t i = 0; i < 8; ++i) EXPECT_EQ(ContentsOf(blocks[i]), i);
  EXPECT_GT(stats().swap_wait_ns, 0u);
  arena_->CheckInvariants();
}

TEST_F(ArenaSwap, ScatteredMemoryIsMovedTogether) {
  MakeSwapping(8 * kBlock);
  std::vector<Address> blocks;
  for (std::uint8_t i = 0; i < 8; ++i) blocks.push_back(Made(i));
  for (int i = 0; i < 8; i += 2) Free(blocks[i]);
  const Address large = Made(9, 4 * kBlock);
  EXPECT_EQ(stats().swap_out_bytes, 0u) << "there was room";
  EXPECT_EQ(ContentsOf(large, 4 * kBlock), 9);
  for (std::uint8_t i = 1; i < 8; i += 2) EXPECT_EQ(ContentsOf(blocks[i]), i);
}

// P4 of space.h, for every driver call of an eviction and of a fetch.
TEST_F(ArenaSwap, NoFaultLosesAByte) {
  for (std::uint64_t call = 0; call < 80; ++call) {
    MakeSwapping(2 * kBlock);
    std::vector<Address> blocks;
    for (std::uint8_t i = 0; i < 4; ++i) blocks.push_back(Made(i));
    device_.driver()->FailCall(call);
    const absl::Status pinned = Pin(blocks[0]);  // evicts one, fetches one
    device_.driver()->Disarm();
    if (pinned.ok()) Unpin(blocks[0]);
    arena_->CheckInvariants();
    for (std::uint8_t i = 0; i < 4; ++i) EXPECT_EQ(ContentsOf(blocks[i]), i) << "call " << call;
    EXPECT_LE(stats().reserved, 2 * kBlock);
    arena_.reset();
  }
}

TEST_F(ArenaSwap, AChildHasTheBytesThatAreOnTheHost) {
  MakeSwapping(2 * kBlock);
  std::vector<Address> blocks;
  for (std::uint8_t i = 0; i < 4; ++i) blocks.push_back(Made(i));
  ASSERT_EQ(stats().swapped, 2 * kBlock);
  const pid_t child = fork();
  if (child == 0) {
    int wrong = 0;
    for (std::uint8_t i = 0; i < 4; ++i) {
      for (Bytes at = 0; at < kBlock; ++at) wrong += ByteAt(blocks[i] + at) != i ? 1 : 0;
    }
    _exit(wrong == 0 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  for (std::uint8_t i = 0; i < 4; ++i) EXPECT_EQ(ContentsOf(blocks[i]), i);
}

TEST_F(ArenaSwap, OffMeansNotThere) {
  Make(2 * kBlock, ArenaOptions());
  Made(1);
  Made(2);
  EXPECT_EQ(TryAllocate(kBlock).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(Pin(Address(1)).ok());
}

}  // namespace
}  // namespace thimble
