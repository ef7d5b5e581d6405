// What a tool learns about an arena's blocks, through the C interface.
#include <dlfcn.h>

#include <cstdlib>
#include <iterator>
#include <map>
#include <random>
#include <vector>

#include "allocator/thimble.h"
#include "gtest/gtest.h"
#include "tests/nvtx/recorder.h"

namespace thimble {
namespace {

constexpr char kRecorder[] = "tests/nvtx/librecorder.so";
constexpr std::size_t kMiB = 1 << 20;

class Nvtx : public testing::Test {
 protected:
  Nvtx() {
    // NVTX looks for its tool at the first call of the process.
    setenv("NVTX_INJECTION64_PATH", kRecorder, /*overwrite=*/1);
    void* library = dlopen(kRecorder, RTLD_NOW);
    count_ = reinterpret_cast<decltype(&recorded_count)>(dlsym(library, "recorded_count"));
    call_ = reinterpret_cast<decltype(&recorded_call)>(dlsym(library, "recorded_call"));
    first_ = count_();
  }

  // Returns what this test heard so far, and checks every rule: regions lie in existing heaps, no
  // two overlap, and only existing ones are removed.
  struct Heard {
    std::map<std::uint64_t, std::uint64_t> heaps;    // bytes by address
    std::map<std::uint64_t, std::uint64_t> regions;  // the same
  };
  Heard Hear() const {
    Heard heard;
    for (std::size_t i = first_; i < count_(); ++i) {
      NvtxCall call;
      call_(i, &call);
      switch (call.kind) {
        case NvtxCall::kHeap:
          EXPECT_TRUE(heard.heaps.emplace(call.address, call.bytes).second);
          break;
        case NvtxCall::kHeapGone:
          EXPECT_EQ(heard.heaps.erase(call.address), 1u);
          break;
        case NvtxCall::kRegion: {
          EXPECT_EQ(heard.heaps.count(call.heap), 1u);
          EXPECT_GE(call.address, call.heap);
          EXPECT_LE(call.address + call.bytes, call.heap + heard.heaps[call.heap]);
          const auto next = heard.regions.lower_bound(call.address);
          EXPECT_TRUE(next == heard.regions.end() || call.address + call.bytes <= next->first);
          EXPECT_TRUE(next == heard.regions.begin() ||
                      std::prev(next)->first + std::prev(next)->second <= call.address);
          heard.regions[call.address] = call.bytes;
          break;
        }
        case NvtxCall::kRegionGone:
          EXPECT_EQ(heard.regions.erase(call.address), 1u);
          break;
      }
    }
    return heard;
  }

  decltype(&recorded_count) count_;
  decltype(&recorded_call) call_;
  std::size_t first_ = 0;
};

void* Allocate(thimble_arena* arena, std::size_t bytes) {
  void* block = nullptr;
  EXPECT_EQ(thimble_allocate(arena, bytes, 0, 0, 0, &block), THIMBLE_OK) << thimble_last_error();
  return block;
}

TEST_F(Nvtx, ABlockIsARegionOfTheBytesThatWereAskedFor) {
  thimble_arena* arena = nullptr;
  ASSERT_EQ(thimble_create("device:cpu,memory:64MiB,nvtx:on", &arena), THIMBLE_OK)
      << thimble_last_error();
  EXPECT_GE(Hear().heaps.size(), 1u);
  void* const block = Allocate(arena, 1000);
  const auto address = reinterpret_cast<std::uint64_t>(block);
  const Heard held = Hear();
  ASSERT_EQ(held.regions.size(), 1u);
  EXPECT_EQ(held.regions.at(address), 1000u);
  EXPECT_EQ(thimble_free(arena, block, 0), THIMBLE_OK);
  EXPECT_EQ(Hear().regions.size(), 0u);
  thimble_destroy(arena);
  EXPECT_EQ(Hear().heaps.size(), 0u);
}

TEST_F(Nvtx, StitchedBlocksAreRegionsToo) {
  thimble_arena* arena = nullptr;
  ASSERT_EQ(thimble_create("device:cpu,memory:32MiB,nvtx:on", &arena), THIMBLE_OK);
  std::vector<void*> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(Allocate(arena, 4 * kMiB));
  for (int i = 0; i < 8; i += 2) EXPECT_EQ(thimble_free(arena, blocks[i], 0), THIMBLE_OK);
  void* const stitched = Allocate(arena, 12 * kMiB);
  const Heard heard = Hear();
  EXPECT_EQ(heard.regions.at(reinterpret_cast<std::uint64_t>(stitched)), 12 * kMiB);
  EXPECT_EQ(heard.regions.size(), 5u);
  thimble_destroy(arena);
}

TEST_F(Nvtx, RandomWorkKeepsTheRules) {
  thimble_arena* arena = nullptr;
  ASSERT_EQ(thimble_create("device:cpu,memory:64MiB,limit:32MiB,nvtx:on", &arena), THIMBLE_OK);
  std::mt19937 random(1);
  std::vector<void*> blocks;
  for (int i = 0; i < 3000; ++i) {
    if (blocks.empty() || random() % 2 == 0) {
      const std::size_t bytes = 1 + random() % (random() % 8 == 0 ? 4 * kMiB : 20000);
      void* block = nullptr;
      if (thimble_allocate(arena, bytes, 0, 0, 0, &block) == THIMBLE_OK) blocks.push_back(block);
    } else {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      EXPECT_EQ(thimble_free(arena, blocks.back(), 0), THIMBLE_OK);
      blocks.pop_back();
    }
    if (random() % 500 == 0) {
      EXPECT_EQ(thimble_trim(arena, 0, nullptr), THIMBLE_OK);
    }
  }
  EXPECT_EQ(Hear().regions.size(), blocks.size());
  thimble_destroy(arena);
}

TEST_F(Nvtx, OffMeansNotThere) {
  thimble_arena* arena = nullptr;
  ASSERT_EQ(thimble_create("device:cpu,memory:64MiB", &arena), THIMBLE_OK);
  EXPECT_EQ(thimble_free(arena, Allocate(arena, 1000), 0), THIMBLE_OK);
  thimble_destroy(arena);
  EXPECT_EQ(count_(), first_);
}

}  // namespace
}  // namespace thimble
