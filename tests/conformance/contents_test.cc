// Bytes written through one mapping are read through every other, and nowhere else; memory that ran
// out comes back. Runs on every driver.
#include <algorithm>
#include <numeric>
#include <vector>

#include "tests/conformance/subject.h"

namespace thimble {
namespace {

class DriverContents : public DriverConformance {
 protected:
  absl::Status Copy(Address device, std::vector<std::uint8_t>& host, CopyDirection direction) {
    return driver_.Copy(device, host.data(), host.size(), direction);
  }
};

INSTANTIATE_TEST_SUITE_P(All, DriverContents, testing::ValuesIn(AllSubjects()), SubjectName);

TEST_P(DriverContents, OneChunkAtTwoAddressesIsTheSameMemory) {
  const Address base = Reserve(4);
  const ChunkHandle chunk = Create();
  ASSERT_TRUE(Succeeds(Map(base, chunk)));
  ASSERT_TRUE(Succeeds(Map(base + 3 * granule_, chunk)));
  ASSERT_TRUE(Succeeds(SetAccess(base)));
  ASSERT_TRUE(Succeeds(SetAccess(base + 3 * granule_)));
  for (const Bytes offset : {Bytes{0}, Bytes{1}, granule_ / 2, granule_ - 1}) {
    Poke(base + offset, 11);
    EXPECT_EQ(Peek(base + 3 * granule_ + offset), 11);
    Poke(base + 3 * granule_ + offset, 22);
    EXPECT_EQ(Peek(base + offset), 22);
  }
}

TEST_P(DriverContents, ChunksStitchedInAnyOrderReadAsOneRange) {
  const Address home = Reserve(4);
  const Address stitched = Reserve(4);
  const std::vector<Bytes> order = {2, 0, 3, 1};
  std::vector<ChunkHandle> chunks;
  for (Bytes slot = 0; slot < 4; ++slot) {
    chunks.push_back(Create());
    ASSERT_TRUE(Succeeds(Map(home + slot * granule_, chunks.back())));
  }
  ASSERT_TRUE(Succeeds(driver_.SetAccess(home, 4 * granule_)));
  for (Bytes slot = 0; slot < 4; ++slot) {
    ASSERT_TRUE(Succeeds(Map(stitched + slot * granule_, chunks[order[slot]])));
  }
  ASSERT_TRUE(Succeeds(driver_.SetAccess(stitched, 4 * granule_)));
  std::vector<std::uint8_t> pattern(4 * granule_);
  for (std::size_t i = 0; i < pattern.size(); ++i) pattern[i] = i * 31 + i / granule_;
  ASSERT_TRUE(Succeeds(Copy(stitched, pattern, CopyDirection::kToDevice)));
  for (Bytes slot = 0; slot < 4; ++slot) {
    std::vector<std::uint8_t> chunk(granule_);
    ASSERT_TRUE(Succeeds(Copy(home + order[slot] * granule_, chunk, CopyDirection::kToHost)));
    EXPECT_TRUE(std::equal(chunk.begin(), chunk.end(), pattern.begin() + slot * granule_)) << slot;
  }
}

TEST_P(DriverContents, BytesSurviveMovingToAnotherAddress) {
  const Address base = Reserve(2);
  const ChunkHandle chunk = Create();
  ASSERT_TRUE(Succeeds(Map(base, chunk)));
  ASSERT_TRUE(Succeeds(SetAccess(base)));
  Poke(base + 5, 55);
  ASSERT_TRUE(Succeeds(Unmap(base)));
  ASSERT_TRUE(Succeeds(Map(base + granule_, chunk)));
  ASSERT_TRUE(Succeeds(SetAccess(base + granule_)));
  EXPECT_EQ(Peek(base + granule_ + 5), 55);
}

TEST_P(DriverContents, UnmappingOneNeighbourLeavesTheOthersAlone) {
  const Address base = Reserve(3);
  for (Bytes slot = 0; slot < 3; ++slot) {
    Back(base + slot * granule_);
    Poke(base + slot * granule_, 100 + slot);
  }
  ASSERT_TRUE(Succeeds(Unmap(base + granule_)));
  EXPECT_EQ(Peek(base), 100);
  EXPECT_EQ(Peek(base + 2 * granule_), 102);
  Back(base + granule_);
  Poke(base + granule_, 1);
  EXPECT_EQ(Peek(base), 100);
  EXPECT_EQ(Peek(base + 2 * granule_), 102);
}

TEST_P(DriverContents, CopyMovesBytesBothWaysAcrossSeams) {
  const Address base = Reserve(3);
  for (const Bytes slot : {2, 0, 1}) Back(base + slot * granule_);
  std::vector<std::uint8_t> out(granule_ + 10);
  std::iota(out.begin(), out.end(), std::uint8_t{3});
  const Address from = base + granule_ - 5;  // ends in the third chunk
  ASSERT_TRUE(Succeeds(Copy(from, out, CopyDirection::kToDevice)));
  std::vector<std::uint8_t> in(out.size());
  ASSERT_TRUE(Succeeds(Copy(from, in, CopyDirection::kToHost)));
  EXPECT_EQ(in, out);
  EXPECT_EQ(Peek(base + granule_ - 6), 0);
  EXPECT_EQ(Peek(from + out.size()), 0);
}

TEST_P(DriverContents, CopyThatLeavesAccessibleMemoryIsRefusedAndWritesNothing) {
  const Address base = Reserve(3);
  Back(base);
  ASSERT_TRUE(Succeeds(Map(base + granule_, Create())));
  std::vector<std::uint8_t> host(granule_, 9);
  EXPECT_FALSE(Copy(base + 1, host, CopyDirection::kToDevice).ok());
  EXPECT_EQ(Peek(base + 1), 0);
  EXPECT_FALSE(Copy(base + 2 * granule_, host, CopyDirection::kToHost).ok());
  EXPECT_EQ(host, std::vector<std::uint8_t>(granule_, 9));
  EXPECT_FALSE(Copy(Address(~std::uint64_t{0}) - 2, host, CopyDirection::kToHost).ok());
}

TEST_P(DriverContents, EmptyCopySucceeds) {
  EXPECT_TRUE(Succeeds(driver_.Copy(Address(), nullptr, 0, CopyDirection::kToHost)));
}

TEST_P(DriverContents, HostMemoryIsPinnedOnce) {
  constexpr Bytes kPage = 4 * kKiB;
  alignas(kPage) static char pages[4 * kPage] = {};
  EXPECT_TRUE(IsRefused(driver_.UnpinHost(pages)));
  ASSERT_TRUE(Succeeds(driver_.PinHost(pages, 3 * kPage)));
  EXPECT_TRUE(IsRefused(driver_.PinHost(pages, kPage)));
  EXPECT_TRUE(IsRefused(driver_.PinHost(pages + 2 * kPage, 2 * kPage)));
  EXPECT_TRUE(IsRefused(driver_.UnpinHost(pages + kPage)));
  ASSERT_TRUE(Succeeds(driver_.PinHost(pages + 3 * kPage, kPage)));
  EXPECT_TRUE(Succeeds(driver_.UnpinHost(pages)));
  EXPECT_TRUE(Succeeds(driver_.UnpinHost(pages + 3 * kPage)));
  EXPECT_TRUE(IsRefused(driver_.UnpinHost(pages)));
}

TEST_P(DriverContents, MemoryRunsOutCleanlyAndComesBack) {
  std::vector<ChunkHandle> chunks;
  for (Bytes i = 0; i < kSubjectGranules; ++i) chunks.push_back(Create());
  EXPECT_EQ(FreeBytes(), 0u);
  for (int tries = 0; tries < 3; ++tries) EXPECT_TRUE(IsExhausted(driver_.Create(granule_)));
  ASSERT_TRUE(Succeeds(driver_.Destroy(chunks.back())));
  EXPECT_TRUE(IsExhausted(driver_.Create(2 * granule_)));
  chunks.back() = Create();
  // Frees every second one: the bytes of a device do not fragment, only addresses do.
  for (Bytes i = 0; i < kSubjectGranules; i += 2) {
    ASSERT_TRUE(Succeeds(driver_.Destroy(chunks[i])));
  }
  EXPECT_TRUE(Succeeds(driver_.Create(kSubjectGranules / 2 * granule_)));
  EXPECT_EQ(FreeBytes(), 0u);
}

TEST_P(DriverContents, RequestLargerThanTheDeviceIsExhausted) {
  EXPECT_TRUE(IsExhausted(driver_.Create((kSubjectGranules + 1) * granule_)));
  EXPECT_EQ(FreeBytes(), kSubjectGranules * granule_);
}

TEST_P(DriverContents, FailureHalfWayThroughABlockCanBeRolledBack) {
  const Address base = Reserve(3);
  const ChunkHandle first = Create();
  const ChunkHandle second = Create();
  ASSERT_TRUE(Succeeds(Map(base, first)));
  ASSERT_TRUE(Succeeds(Map(base + granule_, second)));
  EXPECT_TRUE(IsRefused(Map(base + granule_, Create()))) << "the third step fails";
  EXPECT_TRUE(IsRefused(driver_.SetAccess(base, 3 * granule_)));
  ASSERT_TRUE(Succeeds(Unmap(base + granule_)));
  ASSERT_TRUE(Succeeds(Unmap(base)));
  ASSERT_TRUE(Succeeds(driver_.Release(base, 3 * granule_)));
  const Address again = Reserve(1);
  ASSERT_TRUE(Succeeds(Map(again, first)));
  EXPECT_TRUE(Succeeds(SetAccess(again)));
}

}  // namespace
}  // namespace thimble
