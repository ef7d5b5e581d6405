// Random ops on more memory than the device has: every block keeps its contents and its address,
// however often its bytes leave, and the arena never reserves more than its limit.
//
// For long: bazel test -c opt --test_timeout=3600 --test_env=SWAPPED_STEPS=10000000
//               //tests/model:swapped_test
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "allocator/arena/arena.h"
#include "allocator/driver/host_driver.h"
#include "gtest/gtest.h"
#include "tests/drivers/fault_driver.h"
#include "tests/effort.h"
#include "tests/workloads/random.h"

namespace thimble {
namespace {

constexpr OpName kTurn = {/*key=*/0, /*step=*/0, /*takes_turn=*/true};

constexpr Bytes kPage = 4 * kKiB;
constexpr Bytes kChunk = 2 * kPage;
constexpr Bytes kLimit = 128 * kChunk;
constexpr StreamId kStream{1};

struct Held {
  Address address;
  Bytes bytes = 0;
  std::uint64_t contents = 0;  // at the beginning of every page
  bool exposed = false;
};

class Ops {
 public:
  explicit Ops(std::uint64_t seed)
      : random_(seed), host_(HostDriver::Open({kLimit, kPage}).value()), faults_(*host_) {
    ArenaOptions options;
    options.limit = kLimit;
    options.chunk_bytes = kChunk;
    options.swap = SwapMode::kAuto;
    options.host_limit = 4 * kLimit;
    arena_ = Arena::Create(options, &faults_).value();
  }

  // Some calls fail from now on.
  void BeFaulty() { faults_.FailEvery(97); }

  void Run(std::uint64_t steps, std::uint64_t check_every) {
    for (std::uint64_t step = 0; step < steps; ++step) {
      Step();
      const ArenaStats stats = arena_->GetStats();
      ASSERT_LE(stats.reserved, kLimit);
      if (step % check_every == 0) arena_->CheckInvariants();
    }
    const ArenaStats stats = arena_->GetStats();
    EXPECT_GT(stats.swap_out_bytes, 100 * kLimit);
    EXPECT_GT(stats.swap_in_bytes, 50 * kLimit);
    faults_.Disarm();
    for (const Held& held : held_) {
      Use({&held}, [&] { Check(held); });
    }
    while (!held_.empty()) Free(held_.size() - 1);
    EXPECT_EQ(arena_->GetStats().in_use, 0u);
    EXPECT_EQ(arena_->GetStats().swapped, 0u);
    arena_->CheckInvariants();
  }

 private:
  void Step() {
    const std::size_t what = random_.Index(16);
    if (held_.empty() || (what < 5 && held_.size() < 64)) return Make();
    const std::size_t index = random_.Index(held_.size());
    if (what < 9) return Free(index);
    if (what == 9 && random_.Index(8) == 0) return Expose(index);
    Op(index, random_.Index(held_.size()));
  }

  void Make() {
    Held held;
    held.bytes = random_.LogUniform(kPage, 24 * kChunk);
    const bool long_lived = random_.Index(4) == 0;
    const auto address =
        arena_->Allocate({held.bytes, 0, kStream, /*key=*/0, /*step=*/0, long_lived});
    if (!address.ok()) return;
    held.address = *address;
    Fill(&held);
    EXPECT_TRUE(arena_->Unpin({}, {held.address}, kStream, false).ok());
    held_.push_back(held);
  }

  void Free(std::size_t index) {
    ASSERT_TRUE(arena_->Free(held_[index].address, kStream).ok());
    held_[index] = held_.back();
    held_.pop_back();
  }

  void Expose(std::size_t index) {
    Held& held = held_[index];
    held.exposed = held.exposed || arena_->Expose({held.address}).ok();
    if (held.exposed) Check(held);
  }

  // Reads one block and writes another.
  void Op(std::size_t from, std::size_t to) {
    Use({&held_[from], &held_[to]}, [&] {
      Check(held_[from]);
      Check(held_[to]);
      Fill(&held_[to]);
    });
  }

  template <typename Body>
  void Use(const std::vector<const Held*>& used, Body body) {
    std::vector<Address> blocks;
    for (const Held* const held : used) blocks.push_back(held->address);
    if (!arena_->Pin(blocks, kTurn).ok()) return;
    body();
    EXPECT_TRUE(arena_->Unpin(blocks, {}, kStream, /*takes_turn=*/true).ok());
  }

  static std::uint64_t* PageAt(const Held& held, Bytes at) {
    return static_cast<std::uint64_t*>(ToPointer(held.address + at));
  }
  void Fill(Held* held) {
    held->contents = ++contents_;
    for (Bytes at = 0; at + 8 <= held->bytes; at += kPage) *PageAt(*held, at) = held->contents + at;
  }
  static void Check(const Held& held) {
    for (Bytes at = 0; at + 8 <= held.bytes; at += kPage) {
      ASSERT_EQ(*PageAt(held, at), held.contents + at) << "wrong bytes";
    }
  }

  workloads::Random random_;
  std::unique_ptr<HostDriver> host_;
  FaultDriver faults_;
  std::unique_ptr<Arena> arena_;
  std::vector<Held> held_;
  std::uint64_t contents_ = 0;
};

TEST(Swapped, EveryBlockKeepsItsContents) {
  const char* const steps = std::getenv("SWAPPED_STEPS");
  Ops(/*seed=*/1)
      .Run(steps == nullptr ? Effort(200000) : std::strtoul(steps, nullptr, 10),
           /*check_every=*/1000);
}

TEST(Swapped, AlsoIfTheDriverRefusesNowAndThen) {
  Ops ops(/*seed=*/11);
  ops.BeFaulty();
  ops.Run(Effort(50000), /*check_every=*/500);
}

}  // namespace
}  // namespace thimble
