// Threads whose blocks do not fit together: each pins, reads, writes and frees its own blocks and
// reads those of others, while all of them evict each other's blocks.
#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "allocator/arena/arena.h"
#include "allocator/driver/host_driver.h"
#include "gtest/gtest.h"
#include "tests/drivers/delay_driver.h"
#include "tests/workloads/random.h"

namespace thimble {
namespace {

constexpr Bytes kPage = 4 * kKiB;
constexpr Bytes kBlock = 8 * kPage;
constexpr Bytes kLimit = 24 * kBlock;
constexpr int kThreads = 4;
constexpr int kOwn = 12;     // blocks of every thread
constexpr int kShared = 16;  // that all of them read
constexpr int kSteps = 1000;
constexpr StreamId kStream{1};

void Fill(Address block, std::uint64_t contents) {
  for (Bytes at = 0; at < kBlock; at += kPage) {
    *static_cast<std::uint64_t*>(ToPointer(block + at)) = contents;
  }
}

bool Holds(Address block, std::uint64_t contents) {
  for (Bytes at = 0; at < kBlock; at += kPage) {
    if (*static_cast<const std::uint64_t*>(ToPointer(block + at)) != contents) return false;
  }
  return true;
}

class SwapRace : public testing::Test {
 protected:
  void SetUp() override {
    host_ = HostDriver::Open({kLimit, kPage}).value();
    streams_ = std::make_unique<DelayDriver>(*host_, DelayOptions());
    ArenaOptions options;
    options.limit = kLimit;
    options.chunk_bytes = kPage;
    options.swap = SwapMode::kAuto;
    options.retry = std::chrono::seconds(10);
    arena_ = Arena::Create(options, streams_.get()).value();
    for (Address& block : shared_) block = Make(7);
  }

  Address Make(std::uint64_t contents) {
    const auto block = arena_->Allocate({kBlock, 0, kStream, 0});
    EXPECT_TRUE(block.ok()) << block.status();
    Fill(*block, contents);
    EXPECT_TRUE(arena_->Unpin({}, {*block}, kStream, false).ok());
    return *block;
  }

  void Work(std::uint64_t seed) {
    workloads::Random random(seed);
    std::array<Address, kOwn> own;
    std::array<std::uint64_t, kOwn> contents;
    for (int i = 0; i < kOwn; ++i) own[i] = Make(contents[i] = seed * 1000 + i);
    for (int step = 0; step < kSteps; ++step) {
      const std::size_t i = random.Index(kOwn);
      const Address other = shared_[random.Index(kShared)];
      const std::array<Address, 2> blocks = {own[i], other};
      if (random.Index(8) == 0) {
        EXPECT_TRUE(arena_->Free(own[i], kStream).ok());
        own[i] = Make(++contents[i]);
        continue;
      }
      if (!arena_->Pin(blocks, {1 + i, 1, step % 2 == 0}).ok()) {
        ++refused_;
        continue;
      }
      if (!Holds(own[i], contents[i]) || !Holds(other, 7)) ++wrong_;
      Fill(own[i], ++contents[i]);
      EXPECT_TRUE(arena_->Unpin(blocks, {}, kStream, step % 2 == 0).ok());
    }
    for (const Address block : own) EXPECT_TRUE(arena_->Free(block, kStream).ok());
  }

  std::unique_ptr<HostDriver> host_;
  std::unique_ptr<DelayDriver> streams_;
  std::unique_ptr<Arena> arena_;
  std::array<Address, kShared> shared_;
  std::atomic<int> wrong_{0};
  std::atomic<int> refused_{0};
};

TEST_F(SwapRace, NoByteIsWrong) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back([this, i] { Work(i + 1); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong_, 0);
  EXPECT_EQ(refused_, 0) << "eight pinned blocks fit into 24";
  EXPECT_GT(arena_->GetStats().swap_in_bytes, 20 * kLimit);
  arena_->CheckInvariants();
}

}  // namespace
}  // namespace thimble
