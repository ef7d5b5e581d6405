// TensorFlow's own BFC allocator on regions from an arena.
#include "tf_plugin/tf_sub_allocator.h"

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/tf_plugin/host_arena.h"
#include "xla/tsl/framework/bfc_allocator.h"

namespace thimble::tf {
namespace {

using Visits = std::vector<std::pair<void*, std::size_t>>;

std::unique_ptr<TfSubAllocator> Regions(const HostArena& arena, Visits* came = nullptr,
                                        Visits* went = nullptr) {
  const auto visitor = [](Visits* visits) {
    std::vector<tsl::SubAllocator::Visitor> visitors;
    if (visits != nullptr) {
      visitors.push_back([visits](void* region, int index, std::size_t bytes) {
        EXPECT_EQ(index, 3);
        visits->emplace_back(region, bytes);
      });
    }
    return visitors;
  };
  return std::make_unique<TfSubAllocator>(arena.get(), tsl::AllocatorMemoryType::kDevice,
                                          /*index=*/3, visitor(came), visitor(went));
}

tsl::BFCAllocator::Options Growing() {
  tsl::BFCAllocator::Options options;
  options.allow_growth = true;
  options.allow_retry_on_failure = false;
  options.garbage_collection = true;
  return options;
}

TEST(TfSubAllocator, GivesRegionsAndTakesThemBack) {
  HostArena arena;
  auto regions = Regions(arena);
  std::size_t received = 0;
  void* const region = regions->Alloc(256, 10 * kMiB, &received);
  ASSERT_NE(region, nullptr);
  EXPECT_EQ(received, 10 * kMiB);
  std::memset(region, 0x5A, received);
  EXPECT_EQ(arena.stats().in_use, 10 * kMiB);
  regions->Free(region, received);
  EXPECT_EQ(arena.stats().reserved, 0u) << "memory stays that BFC gave up";
  EXPECT_FALSE(regions->SupportsCoalescing());
  EXPECT_EQ(regions->GetMemoryType(), tsl::AllocatorMemoryType::kDevice);
}

TEST(TfSubAllocator, WhatDoesNotFitIsNullAndChangesNothing) {
  HostArena arena("memory:8MiB");
  Visits came;
  auto regions = Regions(arena, &came);
  std::size_t received = 0;
  EXPECT_EQ(regions->Alloc(256, 9 * kMiB, &received), nullptr);
  EXPECT_EQ(regions->Alloc(256, 0, &received), nullptr);
  regions->Free(nullptr, 0);
  EXPECT_TRUE(came.empty());
  EXPECT_EQ(arena.stats().live_blocks, 0u);
}

TEST(TfSubAllocator, VisitorsSeeEveryRegionComeAndGo) {
  HostArena arena;
  Visits came;
  Visits went;
  {
    tsl::BFCAllocator bfc(Regions(arena, &came, &went), 32 * kMiB, "bfc", Growing());
    bfc.DeallocateRaw(bfc.AllocateRaw(64, 5 * kMiB));
    EXPECT_FALSE(came.empty());
  }
  EXPECT_EQ(came, went);
}

TEST(TfSubAllocator, BfcGrowsShrinksAndGrowsAgain) {
  HostArena arena("memory:32MiB");
  tsl::BFCAllocator bfc(Regions(arena), 32 * kMiB, "bfc", Growing());
  std::vector<void*> blocks;
  for (int i = 0; i < 6; ++i) blocks.push_back(bfc.AllocateRaw(64, 4 * kMiB));
  const std::uint64_t grown = arena.stats().reserved;
  EXPECT_GE(grown, 24 * kMiB);
  for (void* const block : blocks) bfc.DeallocateRaw(block);
  // No region of BFC is that large, so BFC releases all of them for a new one.
  void* const large = bfc.AllocateRaw(64, 30 * kMiB);
  ASSERT_NE(large, nullptr);
  std::memset(large, 0x5A, 30 * kMiB);
  EXPECT_LE(arena.stats().reserved, 32 * kMiB);
  bfc.DeallocateRaw(large);
}

// The point of front:bfc: the arena's free memory is in pieces, and BFC's region is not.
TEST(TfSubAllocator, ARegionNeedsNoContiguousMemory) {
  HostArena arena("memory:32MiB");
  std::vector<void*> blocks(16, nullptr);
  for (void*& block : blocks) {
    ASSERT_EQ(thimble_allocate(arena.get(), 2 * kMiB, 0, 0, 0, &block), THIMBLE_OK);
  }
  for (std::size_t i = 0; i < blocks.size(); i += 2) thimble_free(arena.get(), blocks[i], 0);
  EXPECT_EQ(arena.stats().largest_free, 2 * kMiB);
  tsl::BFCAllocator bfc(Regions(arena), 16 * kMiB, "bfc", Growing());
  void* const block = bfc.AllocateRaw(64, 16 * kMiB);
  ASSERT_NE(block, nullptr);
  std::memset(block, 0x5A, 16 * kMiB);
  EXPECT_EQ(arena.stats().alias_active, 16 * kMiB);
  bfc.DeallocateRaw(block);
  for (std::size_t i = 1; i < blocks.size(); i += 2) thimble_free(arena.get(), blocks[i], 0);
}

}  // namespace
}  // namespace thimble::tf
