// An arena that learns plans: its statistics, and the end of its planning thread.
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "allocator/base/whole_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/arena_plan_fixture.h"

namespace thimble {
namespace {

TEST_F(ArenaPlan, LearnsAndServes) {
  MakeLearning();
  for (int i = 0; i < 20; ++i) {
    Step();
    arena_->WaitForPlans();
  }
  const PlanStats before = arena_->GetStats();
  EXPECT_EQ(before.plans, 1u);
  EXPECT_EQ(before.plan_sites, 28u);
  EXPECT_GE(before.plan_height, before.plan_lower_bound);
  Step();
  const PlanStats after = arena_->GetStats();
  EXPECT_EQ(after.plan_requests - before.plan_requests, 28u);
  EXPECT_EQ(after.plan_hits - before.plan_hits, 28u);
}

TEST_F(ArenaPlan, TheSameAddressesComeBack) {
  MakeLearning();
  for (int i = 0; i < 20; ++i) {
    Step();
    arena_->WaitForPlans();
  }
  const auto addresses = [this] {
    ++step_;
    std::vector<Address> blocks;
    for (std::uint64_t key = 8; key >= 1; --key) blocks.push_back(Ask(key, (key % 3 + 1) * kChunk));
    const std::vector<Address> seen = blocks;
    for (const Address block : blocks) Free(block);
    return seen;
  };
  const std::vector<Address> first = addresses();
  EXPECT_EQ(addresses(), first);
}

// A plan area beside the heap, and what callers may see of it.
class InThePlanArea : public ArenaPlan {
 protected:
  void SetUp() override {
    MakeLearning();
    for (int i = 0; i < 20; ++i) {
      Step();
      arena_->WaitForPlans();
    }
    Step();  // now all its memory is the plan's
    ASSERT_EQ(arena_->GetStats().plans, 1u);
    ++step_;
  }
};

TEST_F(InThePlanArea, BlocksAreKnownByAddressSizeAndKey) {
  const Address block = Ask(4, 2 * kChunk);
  const auto info = arena_->Query(block);
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->bytes, 2 * kChunk);
  EXPECT_EQ(info->key, 4u);
  Free(block);
}

TEST_F(InThePlanArea, MisuseIsReported) {
  const Address block = Ask(4, 2 * kChunk);
  EXPECT_THAT(std::string(arena_->Free(block + kChunk, kFirst).message()),
              testing::HasSubstr("points 16384 bytes into a block"));
  Free(block);
  EXPECT_THAT(std::string(arena_->Free(block, kFirst).message()),
              testing::HasSubstr("freed twice"));
}

TEST_F(InThePlanArea, AnotherStreamWaitsForBlocksFreedThere) {
  const Address all = Ask(8, 3 * kChunk);
  Free(all);
  const Bytes free = stats().limit - stats().reserved;
  const auto rest = arena_->Allocate({free, 0, kFirst, 77, 0});
  ASSERT_TRUE(rest.ok()) << rest.status();
  // Nothing else is left: this must come from the plan's memory, after the device has passed it.
  const std::uint64_t calls = device_.calls();
  const auto other = arena_->Allocate({3 * kChunk, 0, kSecond, 8, step_});
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_GT(device_.calls(), calls) << "the stream was asked";
  arena_->CheckInvariants();
  EXPECT_TRUE(arena_->Free(*other, kSecond).ok());
  Free(*rest);
}

TEST_F(InThePlanArea, ABlockMayBeFreedOnAnotherStream) {
  const Address block = Ask(4, 2 * kChunk);
  const Address beside = Ask(5, 3 * kChunk);
  EXPECT_TRUE(arena_->Free(block, kSecond).ok());
  arena_->CheckInvariants();
  Free(beside);
  Step();
}

TEST_F(InThePlanArea, AStreamCanBeForgotten) {
  const Address block = Ask(4, 2 * kChunk);
  EXPECT_TRUE(arena_->ForgetStream(kFirst).ok());
  arena_->CheckInvariants();
  Free(block);
  Step();
}

TEST_F(InThePlanArea, OtherRequestsCanUseItsFreeMemory) {
  const Address held = Ask(4, 2 * kChunk);
  const Bytes most = stats().limit - 2 * kChunk;
  const auto all = arena_->Allocate({most, 0, kFirst, 77, 0});
  ASSERT_TRUE(all.ok()) << all.status();
  arena_->CheckInvariants();
  Free(*all);
  Free(held);
}

TEST_F(InThePlanArea, SmallBlocksDoNotStandInItsWay) {
  const std::uint64_t hits = stats().plan_hits;  // and all of it is in the heap now, and free
  std::vector<Address> small;
  for (int i = 0; i < 128; ++i) small.push_back(Ask(99, kChunk / 32));
  Step();
  EXPECT_EQ(stats().plan_hits - hits, 28u);
  EXPECT_EQ(stats().plan_repairs, 0u);
  for (const Address block : small) Free(block);
}

TEST_F(InThePlanArea, EverythingCanBeGivenBack) {
  const Address held = Ask(4, 2 * kChunk);
  Bytes released = 0;
  ASSERT_TRUE(arena_->Trim(0, &released).ok());
  EXPECT_LE(stats().reserved, 3 * kChunk);
  arena_->CheckInvariants();
  Free(held);
}

// Long-lived blocks cut the memory into pieces of three chunks; a step needs blocks of seven.
TEST_F(ArenaPlan, MemoryMovesToWhereThePlanIs) {
  MakeLearning();
  std::vector<Address> long_lived;
  std::vector<Address> between;
  for (std::uint64_t i = 0; i < 16; ++i) {
    long_lived.push_back(Ask(100 + i, kChunk));
    between.push_back(Ask(200 + i, 3 * kChunk));
  }
  for (const Address block : between) Free(block);
  const auto step = [this] {
    ++step_;
    std::vector<Address> blocks;
    for (std::uint64_t key = 1; key <= 6; ++key) blocks.push_back(Ask(key, 7 * kChunk));
    for (const Address block : blocks) Free(block);
    arena_->WaitForPlans();
  };
  const ArenaStats learning = [&] {
    for (int i = 0; i < 5; ++i) step();
    return stats();
  }();
  EXPECT_GT(learning.stitches, 0u);
  for (int i = 0; i < 60; ++i) step();
  const ArenaStats before = stats();
  ASSERT_GE(before.plans, 1u);
  EXPECT_LE(before.peak_reserved, learning.peak_reserved);
  EXPECT_EQ(before.reserved, (16 + 6 * 7) * kChunk) << "what was not needed went back";
  EXPECT_EQ(before.plan_height, before.reserved);
  const std::uint64_t calls = device_.calls();
  step();
  EXPECT_EQ(device_.calls(), calls);
  EXPECT_EQ(stats().plan_hits - before.plan_hits, 6u);
  EXPECT_EQ(stats().stitches, before.stitches);
  for (const Address block : long_lived) Free(block);
}

// As with parameters that are not donated: blocks of one step live until the end of the next.
class OverlappingSteps : public ArenaPlan {
 protected:
  // Steps with `kept` blocks that live on and 24 chunks that do not.
  PlanStats Run(std::uint64_t kept, Bytes limit) {
    ArenaOptions options;
    options.plan = true;
    Make(limit, options);
    std::vector<Address> old;
    for (int i = 0; i < 80; ++i) {
      std::vector<Address> blocks;
      std::vector<Address> made;
      for (std::uint64_t key = 11; key <= 14; ++key) blocks.push_back(Ask(key, 6 * kChunk));
      for (std::uint64_t key = 1; key <= kept; ++key) made.push_back(Ask(key, key * kChunk));
      for (const Address block : blocks) Free(block);
      for (const Address block : std::exchange(old, made)) Free(block);
      arena_->WaitForPlans();
    }
    const ArenaStats now = stats();
    EXPECT_EQ(now.out_of_memory, 0u);
    for (const Address block : old) Free(block);
    return now;
  }
};

TEST_F(OverlappingSteps, APlanIsFollowedWhereThereIsRoomForTheChange) {
  const PlanStats plan = Run(/*kept=*/1, /*limit=*/100 * kChunk);
  EXPECT_GT(plan.plans, 0u);
  EXPECT_GT(plan.plan_hits * 10, plan.plan_requests * 9);
}

TEST_F(OverlappingSteps, WithoutRoomThePlanBeginsWithThePresentOrder) {
  const PlanStats plan = Run(/*kept=*/2, /*limit=*/(24 + 2 * 3) * kChunk);
  EXPECT_EQ(plan.plans, 1u);
  EXPECT_EQ(plan.plan_hits, plan.plan_requests);
}

TEST_F(ArenaPlan, SmallBlocksHaveNoSites) {
  MakeLearning();
  for (int i = 0; i < 1000; ++i) Free(Ask(7, 512));
  EXPECT_EQ(arena_->GetStats().plan_sites, 0u);
}

class PlanFile : public ArenaPlan {
 protected:
  // Steps until all of one is served from a plan.
  int Learn() {
    ArenaOptions options;
    options.plan = true;
    options.plan_file = path_;
    Make(256 * kChunk, options);
    for (int steps = 1; steps < 50; ++steps) {
      const std::uint64_t hits = stats().plan_hits;
      Step();
      arena_->WaitForPlans();
      if (stats().plan_hits == hits + 28) return steps;
    }
    return 50;
  }

  const std::string path_ = testing::TempDir() + "/arena_plan_test.plan";
};

TEST_F(PlanFile, TheSecondRunStartsPlanned) {
  std::remove(path_.c_str());
  testing::internal::CaptureStderr();
  const int first = Learn();
  const int second = Learn();
  EXPECT_LT(first, 10);
  EXPECT_LE(second, 3);
  EXPECT_LT(second, first);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(PlanFile, ABadFileIsReportedAndReplaced) {
  std::ofstream(path_) << "something else";
  testing::internal::CaptureStderr();
  EXPECT_LT(Learn(), 10);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::AllOf(testing::HasSubstr(path_), testing::HasSubstr("is damaged")));
  testing::internal::CaptureStderr();
  EXPECT_LE(Learn(), 3);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

// No file may grow to its full size, as on a full disk.
TEST_F(PlanFile, AFileThatCannotBeWrittenIsReportedOnceAndStays) {
  std::remove(path_.c_str());
  Learn();
  const std::string old = ReadWholeFile(path_).value();
  signal(SIGXFSZ, SIG_IGN);
  rlimit usual;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &usual), 0);
  rlimit small = usual;
  small.rlim_cur = old.size() - 1;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  testing::internal::CaptureStderr();
  Learn();
  for (int i = 0; i < 40; ++i) {  // new requests make new plans necessary
    Step();
    Free(Ask(1000 + i / 10, kChunk * (i / 10 + 1)));
    arena_->WaitForPlans();
  }
  const std::string told = testing::internal::GetCapturedStderr();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &usual), 0);
  EXPECT_GT(stats().plans, 2u);
  EXPECT_THAT(told, testing::StartsWith("thimble: plan_file: '"));
  EXPECT_THAT(told, testing::HasSubstr("could not be written: File too large"));
  EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 1) << told;
  EXPECT_EQ(ReadWholeFile(path_).value(), old);
}

TEST_F(PlanFile, AFileForOtherChunksIsReportedAndReplaced) {
  Learned learned;
  learned.chunk_bytes = 2 * kChunk;
  ASSERT_TRUE(WritePlanFile(learned, path_).ok());
  testing::internal::CaptureStderr();
  EXPECT_LT(Learn(), 10);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr("is for chunk:32768"));
}

TEST_F(ArenaPlan, OffMeansNotThere) {
  ArenaOptions options;
  options.plan = false;
  Make(256 * kChunk, options);
  for (int i = 0; i < 50; ++i) Step();
  EXPECT_EQ(arena_->GetStats().plan_sites, 0u);
  EXPECT_EQ(arena_->GetStats().plans, 0u);
}

TEST_F(ArenaPlan, ARequestThatFailedHasNoSite) {
  MakeLearning();
  const Address most = Ask(1, 200 * kChunk);
  EXPECT_FALSE(arena_->Allocate({100 * kChunk, 0, kFirst, 2, step_}).ok());
  arena_->CheckInvariants();  // P5
  Free(most);
  Free(Ask(2, 100 * kChunk));
  EXPECT_EQ(arena_->GetStats().plan_sites, 2u) << "the one it would have had";
}

TEST_F(ArenaPlan, CanGoWhileAPlanIsBeingMade) {
  for (int i = 0; i < 20; ++i) {
    MakeLearning();
    for (int j = 0; j < 5 + i % 10; ++j) Step();
    arena_.reset();
  }
}

TEST_F(ArenaPlan, OtherThreadsGoOnMeanwhile) {
  MakeLearning();
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 1; thread <= 4; ++thread) {
    threads.emplace_back([this, thread] {
      for (std::uint64_t step = 1; step <= 300; ++step) {
        std::vector<Address> blocks;
        for (std::uint64_t key = 1; key <= 10; ++key) {
          const auto block = arena_->Allocate({kChunk * (key % 2 + 1), 0, StreamId{thread},
                                               100 * thread + key, 1000 * thread + step});
          ASSERT_TRUE(block.ok()) << block.status();
          blocks.push_back(*block);
        }
        for (const Address block : blocks) ASSERT_TRUE(arena_->Free(block, StreamId{thread}).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  arena_->CheckInvariants();
  for (int i = 0; i < 40; ++i) {
    arena_->WaitForPlans();
    Step();
  }
  EXPECT_GE(arena_->GetStats().plans, 1u);
}

}  // namespace
}  // namespace thimble
