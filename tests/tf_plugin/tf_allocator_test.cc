// What TensorFlow may ask of an allocator, on a real arena.
#include "tf_plugin/tf_allocator.h"

#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tf_plugin/host_arena.h"
#include "tests/tf_plugin/log_lines.h"
#include "tsl/profiler/lib/scoped_memory_debug_annotation.h"

namespace thimble::tf {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr std::size_t kAlignment = tsl::Allocator::kAllocatorAlignment;

TfAllocator::Options Named(absl::Duration retry = absl::ZeroDuration()) {
  TfAllocator::Options options;
  options.name = "GPU_0_thimble";
  options.retry = retry;
  return options;
}

tsl::AllocationAttributes WithoutRetry() {
  return tsl::AllocationAttributes(/*retry_on_failure=*/false, /*allocation_will_be_logged=*/true,
                                   /*freed_by_func=*/nullptr);
}

TEST(TfAllocator, BlocksAreMemoryAtTheAlignmentAskedFor) {
  HostArena arena;
  TfAllocator allocator(arena.get(), Named());
  for (const std::size_t alignment : {std::size_t{1}, kAlignment, std::size_t{4096}, 2 * kMiB}) {
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{1000}, 3 * kMiB}) {
      void* const block = allocator.AllocateRaw(alignment, bytes);
      ASSERT_NE(block, nullptr);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignment, 0u);
      std::memset(block, 0x5A, bytes);
      allocator.DeallocateRaw(block);
    }
  }
  EXPECT_EQ(arena.stats().live_blocks, 0u);
}

TEST(TfAllocator, NothingIsAllocatedForNoBytes) {
  HostArena arena;
  TfAllocator allocator(arena.get(), Named());
  EXPECT_EQ(allocator.AllocateRaw(kAlignment, 0), nullptr);
  allocator.DeallocateRaw(nullptr);
  EXPECT_EQ(allocator.GetStats()->num_allocs, 0);
}

TEST(TfAllocator, TellsSizesAndAnIdThatNoOtherBlockHad) {
  HostArena arena;
  TfAllocator allocator(arena.get(), Named());
  ASSERT_TRUE(allocator.TracksAllocationSizes());
  std::set<std::int64_t> ids;
  for (int i = 0; i < 100; ++i) {
    void* const block = allocator.AllocateRaw(kAlignment, 1000);
    EXPECT_EQ(allocator.RequestedSize(block), 1000u);
    EXPECT_EQ(allocator.AllocatedSize(block), 1024u);
    EXPECT_GT(allocator.AllocationId(block), 0);
    ids.insert(allocator.AllocationId(block));
    allocator.DeallocateRaw(block);
  }
  EXPECT_THAT(ids, SizeIs(100));
}

TEST(TfAllocator, EveryStatisticIsTrue) {
  HostArena arena("memory:64MiB,limit:32MiB");
  TfAllocator allocator(arena.get(), Named());
  void* const large = allocator.AllocateRaw(kAlignment, 6 * kMiB + 1);
  void* const small = allocator.AllocateRaw(kAlignment, 100);
  allocator.DeallocateRaw(large);
  const tsl::AllocatorStats stats = *allocator.GetStats();
  const thimble_stats truth = arena.stats();
  EXPECT_EQ(stats.num_allocs, 2);
  EXPECT_EQ(stats.bytes_in_use, 256);
  EXPECT_EQ(stats.peak_bytes_in_use, static_cast<std::int64_t>(6 * kMiB + 512));
  EXPECT_EQ(stats.largest_alloc_size, static_cast<std::int64_t>(6 * kMiB + 256));
  EXPECT_EQ(stats.bytes_limit, static_cast<std::int64_t>(32 * kMiB));
  EXPECT_EQ(stats.bytes_reservable_limit, stats.bytes_limit);
  EXPECT_EQ(stats.bytes_reserved, static_cast<std::int64_t>(truth.reserved));
  EXPECT_EQ(stats.peak_bytes_reserved, static_cast<std::int64_t>(truth.peak_reserved));
  EXPECT_EQ(stats.pool_bytes, stats.bytes_reserved);
  EXPECT_EQ(stats.peak_pool_bytes, stats.peak_bytes_reserved);
  EXPECT_GE(stats.largest_free_block_bytes, static_cast<std::int64_t>(6 * kMiB));
  EXPECT_EQ(truth.in_use, 256u);
  allocator.DeallocateRaw(small);
}

TEST(TfAllocator, ClearStatsKeepsWhatIsInUse) {
  HostArena arena;
  TfAllocator allocator(arena.get(), Named());
  void* const kept = allocator.AllocateRaw(kAlignment, kMiB);
  allocator.DeallocateRaw(allocator.AllocateRaw(kAlignment, 8 * kMiB));
  EXPECT_TRUE(allocator.ClearStats());
  const tsl::AllocatorStats stats = *allocator.GetStats();
  EXPECT_EQ(stats.num_allocs, 0);
  EXPECT_EQ(stats.largest_alloc_size, 0);
  EXPECT_EQ(stats.bytes_in_use, static_cast<std::int64_t>(kMiB));
  EXPECT_EQ(stats.peak_bytes_in_use, stats.bytes_in_use);
  EXPECT_EQ(stats.peak_bytes_reserved, stats.bytes_reserved);
  allocator.DeallocateRaw(kept);
}

TEST(TfAllocator, ARequestWaitsForAFree) {
  HostArena arena("memory:8MiB");
  TfAllocator allocator(arena.get(), Named(absl::Seconds(60)));
  void* const all = allocator.AllocateRaw(kAlignment, 8 * kMiB);
  std::thread other([&] {
    absl::SleepFor(absl::Milliseconds(50));
    allocator.DeallocateRaw(all);
  });
  const absl::Time start = absl::Now();
  void* const block = allocator.AllocateRaw(kAlignment, 6 * kMiB);
  other.join();
  EXPECT_NE(block, nullptr);
  EXPECT_LT(absl::Now() - start, absl::Seconds(30));
  allocator.DeallocateRaw(block);
}

TEST(TfAllocator, OnlyTheFirstOfManyWaitsInVain) {
  LogLines log;
  HostArena arena("memory:8MiB");
  constexpr absl::Duration kRetry = absl::Seconds(1);
  TfAllocator allocator(arena.get(), Named(kRetry));
  void* const most = allocator.AllocateRaw(kAlignment, 6 * kMiB);
  const auto seconds_of = [&](std::size_t bytes) {
    const absl::Time start = absl::Now();
    EXPECT_EQ(allocator.AllocateRaw(kAlignment, bytes), nullptr);
    return absl::Now() - start;
  };
  EXPECT_GE(seconds_of(4 * kMiB), kRetry);
  EXPECT_THAT(log.lines(), SizeIs(1));
  for (int i = 0; i < 20; ++i) EXPECT_LT(seconds_of(4 * kMiB), kRetry);
  EXPECT_THAT(log.lines(), SizeIs(21));
  EXPECT_THAT(log.lines().back(), HasSubstr("again"));
  // Something was freed: waiting may help once more.
  allocator.DeallocateRaw(most);
  void* const all = allocator.AllocateRaw(kAlignment, 5 * kMiB);
  EXPECT_GE(seconds_of(4 * kMiB), kRetry);
  allocator.DeallocateRaw(all);
}

TEST(TfAllocator, NobodyWaitsWhoMayNotOrCannotBeHelped) {
  LogLines log;
  HostArena arena("memory:8MiB");
  TfAllocator allocator(arena.get(), Named(absl::Seconds(60)));
  void* const most = allocator.AllocateRaw(kAlignment, 6 * kMiB);
  const absl::Time start = absl::Now();
  EXPECT_EQ(allocator.AllocateRaw(kAlignment, 4 * kMiB, WithoutRetry()), nullptr);
  EXPECT_EQ(allocator.AllocateRaw(kAlignment, 9 * kMiB), nullptr) << "beyond the limit";
  EXPECT_EQ(allocator.AllocateRaw(kAlignment, SIZE_MAX), nullptr);
  EXPECT_LT(absl::Now() - start, absl::Seconds(30));
  EXPECT_THAT(log.lines(), Each(HasSubstr("GPU_0_thimble")));
  allocator.DeallocateRaw(most);
}

TEST(TfAllocator, OptionalMemoryIsReportedTenTimesAtMost) {
  LogLines log;
  HostArena arena("memory:8MiB");
  TfAllocator allocator(arena.get(), Named());
  for (int i = 0; i < 30; ++i) {
    EXPECT_EQ(allocator.AllocateRaw(kAlignment, 9 * kMiB, WithoutRetry()), nullptr);
  }
  EXPECT_LE(log.lines().size(), 10u);
}

TEST(TfAllocator, TheReportNamesTheOpsThatHoldMemory) {
  LogLines log;
  HostArena arena("memory:8MiB");
  TfAllocator allocator(arena.get(), Named());
  std::vector<void*> blocks;
  {
    const tsl::profiler::ScopedMemoryDebugAnnotation op("block_1/attention/MatMul");
    blocks.push_back(allocator.AllocateRaw(kAlignment, 5 * kMiB));
  }
  {
    const tsl::profiler::ScopedMemoryDebugAnnotation op("block_1/Relu");
    EXPECT_EQ(allocator.AllocateRaw(kAlignment, 4 * kMiB), nullptr);
  }
  ASSERT_THAT(log.lines(), SizeIs(1));
  for (const char* part :
       {"GPU_0_thimble: out of memory (true)", "4.00 MiB by block_1/Relu", "free",
        "largest possible block", "5.00 MiB block_1/attention/MatMul", "needs      2.00 MiB"}) {
    EXPECT_THAT(log.lines().front(), HasSubstr(part));
  }
  for (void* const block : blocks) allocator.DeallocateRaw(block);
}

TEST(TfAllocator, ItsNameExplainsTheLastFailureOnce) {
  HostArena arena;
  TfAllocator allocator(arena.get(), Named());
  TfAllocator other(arena.get(), Named());
  const LogLines log;
  EXPECT_EQ(allocator.AllocateRaw(kAlignment, arena.stats().limit + 1), nullptr);
  EXPECT_EQ(other.Name(), "GPU_0_thimble");
  std::thread([&] { EXPECT_EQ(allocator.Name(), "GPU_0_thimble"); }).join();
  EXPECT_THAT(allocator.Name(), StartsWith("GPU_0_thimble: out of memory (true)"));
  EXPECT_EQ(allocator.Name(), "GPU_0_thimble");
  // A report that nobody took disappears with the next request.
  EXPECT_EQ(allocator.AllocateRaw(kAlignment, arena.stats().limit + 1), nullptr);
  allocator.DeallocateRaw(allocator.AllocateRaw(kAlignment, 1000));
  EXPECT_EQ(allocator.Name(), "GPU_0_thimble");
}

TEST(TfAllocator, AWrongRequestIsReportedAndChangesNothing) {
  LogLines log;
  HostArena arena;
  TfAllocator allocator(arena.get(), Named());
  EXPECT_EQ(allocator.AllocateRaw(/*alignment=*/3, kMiB), nullptr);
  EXPECT_THAT(log.lines().back(), HasSubstr("alignment 3"));
  EXPECT_EQ(allocator.GetStats()->bytes_in_use, 0);
}

// Training must not continue on weights whose memory another tensor may use by now.
TEST(TfAllocatorDeathTest, AWrongFreeEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a fork could not use the arena
  HostArena arena;
  TfAllocator allocator(arena.get(), Named());
  void* const block = allocator.AllocateRaw(kAlignment, kMiB);
  EXPECT_DEATH(allocator.DeallocateRaw(static_cast<char*>(block) + 256),
               "cannot free .*results can no longer be trusted");
  allocator.DeallocateRaw(block);
  EXPECT_DEATH(allocator.DeallocateRaw(block), "freed twice.*results can no longer be trusted");
}

// freed_by_func asks for memory that no kernel uses any more. On the host every stream has passed,
// so what was freed on the compute stream serves at once.
TEST(TfAllocator, MemoryForOtherStreamsIsServed) {
  HostArena arena("memory:8MiB");
  TfAllocator::Options options = Named();
  options.timestamped = true;
  TfAllocator allocator(arena.get(), options);
  allocator.SetStreamAndPreallocateMemory(reinterpret_cast<void*>(0x1000));
  allocator.DeallocateRaw(allocator.AllocateRaw(kAlignment, 8 * kMiB));
  std::function<std::uint64_t()> count = [] { return 1; };
  const tsl::AllocationAttributes attributes(false, true, &count);
  allocator.SetSafeFrontier(1);
  void* const block = allocator.AllocateRaw(kAlignment, 8 * kMiB, attributes);
  EXPECT_NE(block, nullptr);
  allocator.DeallocateRaw(block);
}

TEST(TfAllocator, ThreadsLoseNothing) {
  LogLines log;
  HostArena arena;
  TfAllocator allocator(arena.get(), Named());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&allocator, t] {
      const tsl::profiler::ScopedMemoryDebugAnnotation op("op");
      for (int i = 0; i < 2000; ++i) {
        const std::size_t bytes = 1 + (i * 7919 + t * 104729) % 40000;
        void* const block = allocator.AllocateRaw(kAlignment, bytes);
        ASSERT_EQ(allocator.RequestedSize(block), bytes);
        allocator.DeallocateRaw(block);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const tsl::AllocatorStats stats = *allocator.GetStats();
  EXPECT_EQ(stats.num_allocs, 8000);
  EXPECT_EQ(stats.bytes_in_use, 0);
  EXPECT_LE(stats.peak_bytes_in_use, 4 * 40192);
  EXPECT_THAT(log.lines(), IsEmpty());
}

}  // namespace
}  // namespace thimble::tf
