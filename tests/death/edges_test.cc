// Unmapped memory cannot be used: a write beyond the last chunk, into memory that was given back,
// or past a stitched block faults at once and does not hit other blocks. Each case runs in a child
// process.
//
// Double, wild and interior frees do not die: they are refused with a text (tests/abi).
#include <csignal>
#include <memory>
#include <vector>

#include "allocator/arena/arena.h"
#include "allocator/driver/host_driver.h"
#include "gtest/gtest.h"

namespace thimble {
namespace {

constexpr Bytes kGranule = 4 * kKiB;

class EdgesDeathTest : public testing::Test {
 protected:
  EdgesDeathTest() {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    HostOptions host;
    host.total_bytes = 64 * kGranule;
    host.granularity = kGranule;
    driver_ = HostDriver::Open(host).value();
    ArenaOptions options;
    options.chunk_bytes = kGranule;
    arena_ = Arena::Create(options, driver_.get()).value();
  }

  Address Allocate(Bytes bytes) { return arena_->Allocate({bytes, 0, StreamId{}, 0}).value(); }
  static void Write(Address address) { *static_cast<volatile char*>(ToPointer(address)) = 1; }
  static char Read(Address address) { return *static_cast<volatile char*>(ToPointer(address)); }

  std::unique_ptr<HostDriver> driver_;
  std::unique_ptr<Arena> arena_;
};

const auto kSegmentationFault = testing::KilledBySignal(SIGSEGV);

TEST_F(EdgesDeathTest, AnOverrunOfTheLastChunkFaults) {
  const Address block = Allocate(3 * kGranule);
  Write(block + 3 * kGranule - 1);
  EXPECT_EXIT(Write(block + 3 * kGranule), kSegmentationFault, "");
  EXPECT_EXIT(Read(block + 3 * kGranule), kSegmentationFault, "");
}

TEST_F(EdgesDeathTest, UseAfterTrimFaults) {
  const Address block = Allocate(8 * kGranule);
  Write(block);
  ASSERT_TRUE(arena_->Free(block, StreamId{}).ok());
  Write(block);  // still mapped: a pool cannot tell
  Bytes released = 0;
  ASSERT_TRUE(arena_->Trim(0, &released).ok());
  ASSERT_EQ(released, 8 * kGranule);
  EXPECT_EXIT(Write(block), kSegmentationFault, "");
  EXPECT_EXIT(Read(block + 8 * kGranule - 1), kSegmentationFault, "");
}

TEST_F(EdgesDeathTest, AnOverrunOfAStitchedBlockFaults) {
  std::vector<Address> pieces;
  for (int i = 0; i < 64; ++i) pieces.push_back(Allocate(kGranule));
  for (int i = 0; i < 64; i += 2) ASSERT_TRUE(arena_->Free(pieces[i], StreamId{}).ok());
  const Address block = Allocate(8 * kGranule);
  ASSERT_EQ(arena_->Query(block)->seams, 7u);
  Write(block + 8 * kGranule - 1);
  EXPECT_EXIT(Write(block + 8 * kGranule), kSegmentationFault, "");
}

TEST_F(EdgesDeathTest, UseAfterTheArenaIsGoneFaults) {
  const Address small = Allocate(100);
  const Address large = Allocate(8 * kGranule);
  Write(small);
  Write(large);
  arena_.reset();
  EXPECT_EXIT(Write(small), kSegmentationFault, "");
  EXPECT_EXIT(Write(large), kSegmentationFault, "");
}

}  // namespace
}  // namespace thimble
