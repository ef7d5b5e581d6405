// Training that departs from its plan: requests come in another order, are missing or added, or
// have other sizes or streams. No byte is handed out twice, none is lost, and the plan recovers.
#include <map>
#include <memory>
#include <vector>

#include "allocator/arena/arena.h"
#include "allocator/driver/host_driver.h"
#include "gtest/gtest.h"
#include "tests/model/oracle.h"
#include "tests/workloads/random.h"

namespace thimble {
namespace {

constexpr Bytes kChunk = 64 * kKiB;
constexpr Bytes kDevice = 48 * kMiB;
constexpr StreamId kStream{1};
constexpr StreamId kOther{2};

// One request of a step: its caller, its size, and how long the block is held.
struct Line {
  std::uint64_t key;
  Bytes bytes;
  std::size_t held_for;  // further requests
};

class Training {
 public:
  explicit Training(std::uint64_t seed) : random_(seed) {
    HostOptions device;
    device.total_bytes = kDevice;
    device.granularity = kChunk;
    host_ = *HostDriver::Open(device);
    ArenaOptions options;
    options.chunk_bytes = kChunk;
    options.plan = true;
    arena_ = *Arena::Create(options, host_.get());
    oracle_ = std::make_unique<Oracle>(host_.get());
    for (std::uint64_t key = 1; key <= kLines; ++key) {
      script_.push_back({key, RandomBytes(), 1 + random_.Index(kLines / 3)});
    }
    for (int i = 0; i < 12; ++i) Allocate(1000 + i, RandomBytes(), kForever);  // weights
  }

  // `disturbed` of a thousand requests differ from the script.
  void Step(std::size_t disturbed) {
    ++step_;
    is_disturbed_ = disturbed > 0;
    std::vector<Line> lines = script_;
    for (std::size_t i = 0; i + 1 < lines.size(); ++i) {
      if (random_.Index(1000) >= disturbed) continue;
      switch (random_.Index(4)) {
        case 0:
          std::swap(lines[i], lines[i + 1]);
          break;
        case 1:
          lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(i));
          break;
        case 2:
          lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(i),
                       {5000 + random_.Index(1000), RandomBytes(), random_.Index(20)});
          break;
        default:
          lines[i].bytes = RandomBytes();
      }
    }
    for (const Line& line : lines) {
      Allocate(line.key, line.bytes, now_ + line.held_for);
      if (testing::Test::HasFatalFailure()) return;
      FreeDue();
    }
    arena_->WaitForPlans();
  }

  // Requests that got their place, of those in `steps` undisturbed ones.
  double HitRate(int steps) {
    const PlanStats before = arena_->GetStats();
    for (int i = 0; i < steps; ++i) Step(0);
    const PlanStats after = arena_->GetStats();
    EXPECT_EQ(after.plan_requests - before.plan_requests,
              static_cast<std::uint64_t>(steps) * kLines);
    return static_cast<double>(after.plan_hits - before.plan_hits) /
           static_cast<double>(after.plan_requests - before.plan_requests);
  }

  void Check() {
    arena_->CheckInvariants();
    ASSERT_TRUE(oracle_->CheckAllContents());
    ASSERT_TRUE(oracle_->CheckPhysical());
    ASSERT_EQ(arena_->GetStats().in_use, oracle_->in_use());
  }

  void Finish() {
    now_ = kForever;
    FreeDue();
    EXPECT_EQ(arena_->GetStats().in_use, 0u);
    Bytes released = 0;
    ASSERT_TRUE(arena_->Trim(0, &released).ok());
    EXPECT_EQ(arena_->GetStats().reserved, 0u) << "nothing is lost";
  }

  std::uint64_t operations() const { return operations_; }
  PlanStats plan() { return arena_->GetStats(); }

  static constexpr std::uint64_t kLines = 90;

 private:
  static constexpr std::uint64_t kForever = ~std::uint64_t{0};

  struct Block {
    Address address;
    StreamId stream;
  };

  Bytes RandomBytes() { return RoundUp(random_.LogUniform(kChunk / 8, 16 * kChunk), 256); }

  void Allocate(std::uint64_t key, Bytes bytes, std::uint64_t until) {
    ++now_;
    ++operations_;
    const StreamId stream = is_disturbed_ && random_.Index(20'000) == 0 ? kOther : kStream;
    const auto address = arena_->Allocate({bytes, 0, stream, key, step_});
    ASSERT_TRUE(address.ok()) << address.status();
    Held held;
    held.bytes = held.counted = bytes;
    held.stream = stream;
    held.key = key;
    held.serial = operations_;
    ASSERT_TRUE(oracle_->Add(*address, held));
    due_.emplace(until, Block{*address, stream});
  }

  void FreeDue() {
    while (!due_.empty() && due_.begin()->first <= now_) {
      const Block block = due_.begin()->second;
      due_.erase(due_.begin());
      ++operations_;
      ASSERT_TRUE(oracle_->Remove(block.address));
      ASSERT_TRUE(arena_->Free(block.address, block.stream).ok());
    }
  }

  workloads::Random random_;
  std::unique_ptr<HostDriver> host_;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<Oracle> oracle_;
  std::vector<Line> script_;
  std::multimap<std::uint64_t, Block> due_;
  bool is_disturbed_ = false;
  std::uint64_t now_ = 0;
  std::uint64_t step_ = 0;
  std::uint64_t operations_ = 0;
};

class PlannedSteps : public testing::TestWithParam<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, PlannedSteps, testing::Range<std::uint64_t>(0, 4));

TEST_P(PlannedSteps, DivergenceNeverHurtsAndThePlanRecovers) {
  Training training(GetParam());
  for (int i = 0; i < 20; ++i) training.Step(0);
  ASSERT_GE(training.plan().plans, 1u);
  EXPECT_GE(training.HitRate(5), 0.98);
  for (int round = 0; training.operations() < 250'000; ++round) {
    for (int i = 0; i < 20; ++i) {
      ASSERT_NO_FATAL_FAILURE(training.Step(/*disturbed=*/10 + 90 * (round % 3)));
    }
    ASSERT_NO_FATAL_FAILURE(training.Check());
  }
  for (int i = 0; i < 200; ++i) training.Step(0);
  EXPECT_GE(training.HitRate(5), 0.98) << "the plan is as good as before";
  ASSERT_NO_FATAL_FAILURE(training.Finish());
}

}  // namespace
}  // namespace thimble
