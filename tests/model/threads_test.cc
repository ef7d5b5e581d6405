// Eight threads on one arena: every block belongs to one of them at a time, and its bytes with it,
// while memory runs out, is trimmed and is looked at. For TSan, which sees every access to a block.
#include <array>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "allocator/arena/arena.h"
#include "allocator/driver/delay_driver.h"
#include "allocator/driver/host_driver.h"
#include "tests/model/oracle.h"
#include "tests/workloads/random.h"

namespace thimble {
namespace {

constexpr int kThreads = 8;
constexpr int kOperations = 50'000;  // of each thread
constexpr Bytes kChunk = 16 * kKiB;
constexpr Bytes kLimit = 128 * kChunk;

// Blocks on their way from one thread to another.
class Mailbox {
 public:
  // Puts a block in and takes another out; address 0 is no block.
  std::pair<Address, Held> Exchange(std::size_t place, std::pair<Address, Held> block) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(places_[place % places_.size()], block);
  }
  static constexpr std::size_t kPlaces = 16;

 private:
  std::mutex mutex_;
  std::array<std::pair<Address, Held>, kPlaces> places_{};
};

class Worker {
 public:
  Worker(int number, Arena* arena, const HostDriver* host, Mailbox* mailbox)
      : number_(number), arena_(*arena), mailbox_(*mailbox), oracle_(host), random_(number + 1) {}

  void Run() {
    for (int operation = 0; operation < kOperations; ++operation) {
      Step();
      if (testing::Test::HasFatalFailure()) FAIL() << "thread " << number_ << " at " << operation;
    }
    while (oracle_.size() > 0) ASSERT_NO_FATAL_FAILURE(Free(oracle_.Nth(0)));
  }

  std::uint64_t served() const { return served_; }
  std::uint64_t refused() const { return refused_; }

 private:
  // Threads in pairs share a stream, as frameworks do.
  StreamId stream() const { return StreamId{static_cast<std::uint64_t>(number_ / 2)}; }

  void Step() {
    const std::size_t draw = random_.Index(1000);
    if (draw < 1) return Trim();
    if (draw < 3) return Look();
    if (draw < 60) return PassOn();
    if (oracle_.size() == 0 || random_.Index(100) < (oracle_.size() < 40 ? 55 : 45)) {
      return Allocate();
    }
    Free(oracle_.Nth(random_.Index(oracle_.size())));
  }

  void Allocate() {
    const Bytes bytes =
        random_.Index(4) == 0 ? random_.LogUniform(4097, kLimit / 8) : 1 + random_.Index(4096);
    const auto address = arena_.Allocate(bytes, 0, stream(), 0);
    if (!address.ok()) {
      ASSERT_TRUE(absl::IsResourceExhausted(address.status())) << address.status();
      ++refused_;
      return;
    }
    ++served_;
    const std::uint64_t serial = served_ * kThreads + static_cast<std::uint64_t>(number_);
    const Bytes rounded = RoundUp(bytes, kUnit);
    ASSERT_TRUE(oracle_.Add(*address, {rounded, rounded, stream(), 0, serial}));
  }

  void Free(Address address) {
    ASSERT_TRUE(oracle_.Remove(address));
    const absl::Status status = arena_.Free(address, stream());
    ASSERT_TRUE(status.ok()) << status;
  }

  void PassOn() {
    std::pair<Address, Held> block;
    if (oracle_.size() > 0) {
      block.first = oracle_.Nth(random_.Index(oracle_.size()));
      block.second = oracle_.at(block.first);
      ASSERT_TRUE(oracle_.Remove(block.first));
    }
    block = mailbox_.Exchange(random_.Index(Mailbox::kPlaces), block);
    if (block.first == 0) return;
    ASSERT_TRUE(oracle_.Adopt(block.first, block.second));
  }

  void Trim() {
    Bytes released = 0;
    const absl::Status status = arena_.Trim(random_.Index(kLimit), &released);
    ASSERT_TRUE(status.ok()) << status;
  }

  void Look() {
    const ArenaStats stats = arena_.GetStats();
    ASSERT_TRUE(stats.AddsUp());
    ASSERT_LE(stats.reserved, kLimit);
    ASSERT_LE(stats.in_use, kLimit);
    arena_.CheckInvariants();
  }

  const int number_;
  Arena& arena_;
  Mailbox& mailbox_;
  Oracle oracle_;
  workloads::Random random_;
  std::uint64_t served_ = 0;
  std::uint64_t refused_ = 0;
};

TEST(Threads, EightThreadsNeverShareAByte) {
  HostOptions host_options;
  host_options.granularity = kPage;
  host_options.total_bytes = kLimit;
  const auto host = HostDriver::Open(host_options);
  ASSERT_TRUE(host.ok()) << host.status();
  DelayOptions delays;
  delays.max_us = 0;  // yields around every driver call: other threads get in between
  DelayDriver driver(**host, delays);
  ArenaOptions options;
  options.limit = kLimit;
  options.chunk_bytes = kChunk;
  auto arena = Arena::Create(options, &driver);
  ASSERT_TRUE(arena.ok()) << arena.status();

  Mailbox mailbox;
  std::vector<Worker> workers;
  for (int i = 0; i < kThreads; ++i) workers.emplace_back(i, arena->get(), host->get(), &mailbox);
  std::vector<std::thread> threads;
  for (Worker& worker : workers) threads.emplace_back([&worker] { worker.Run(); });
  for (std::thread& thread : threads) thread.join();

  std::uint64_t served = 0;
  std::uint64_t refused = 0;
  for (const Worker& worker : workers) {
    served += worker.served();
    refused += worker.refused();
  }
  EXPECT_GT(served, kThreads * kOperations / 4u) << "the test has become too easy";
  EXPECT_GT(refused, 0u) << "memory never ran out";
  for (std::size_t place = 0; place < Mailbox::kPlaces; ++place) {
    const Address left = mailbox.Exchange(place, {}).first;
    EXPECT_TRUE((*arena)->Free(left, StreamId{}).ok());
  }
  const ArenaStats stats = (*arena)->GetStats();
  EXPECT_EQ(stats.in_use, 0u);
  EXPECT_EQ(stats.live_blocks, 0u);
  EXPECT_EQ(stats.allocations, served);
  (*arena)->CheckInvariants();
}

}  // namespace
}  // namespace thimble
