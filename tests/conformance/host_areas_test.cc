// P9: Linux caps the memory areas of a process. The host driver counts areas as the kernel does,
// joins them if it can, reports the cap as out of memory, and recovers.
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <random>
#include <vector>

#include "allocator/driver/host_driver.h"
#include "gtest/gtest.h"
#include "tests/conformance/subject.h"

namespace thimble {
namespace {

constexpr Bytes kPage = 4 * kKiB;

std::unique_ptr<HostDriver> Open(std::uint64_t max_areas) {
  HostOptions options;
  options.granularity = kPage;
  options.total_bytes = kGiB;
  options.max_areas = max_areas;
  return HostDriver::Open(options).value();
}

// How many areas of the kernel overlap a range.
std::uint64_t KernelAreas(Address begin, Address end) {
  std::FILE* const maps = std::fopen("/proc/self/maps", "r");
  std::uint64_t count = 0;
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  while (std::fscanf(maps, "%" SCNx64 "-%" SCNx64 "%*[^\n]", &first, &last) == 2) {
    if (first < end.value() && last > begin.value()) ++count;
  }
  std::fclose(maps);
  return count;
}

class HostAreas : public testing::Test {
 protected:
  // Chunks with neighbouring bytes at neighbouring addresses: all in one area.
  static void MapRun(HostDriver& driver, Address base, int count) {
    for (int i = 0; i < count; ++i) {
      const ChunkHandle chunk = driver.Create(kPage).value();
      ASSERT_TRUE(Succeeds(driver.Map(base + i * kPage, kPage, chunk)));
    }
    ASSERT_TRUE(Succeeds(driver.SetAccess(base, count * kPage)));
  }

  // Maps `chunk` at every second page until refused; returns how many were mapped.
  static int MapWithGaps(HostDriver& driver, Address base, int pages, ChunkHandle chunk) {
    for (int i = 0; i < pages / 2; ++i) {
      const absl::Status status = driver.Map(base + 2 * i * kPage, kPage, chunk);
      if (status.ok()) continue;
      EXPECT_TRUE(IsExhausted(status));
      return i;
    }
    ADD_FAILURE() << "the cap was never reached";
    return pages / 2;
  }
};

TEST_F(HostAreas, NeighboursShareOneArea) {
  const std::unique_ptr<HostDriver> driver = Open(0);
  const Address base = driver->Reserve(64 * kPage, kPage).value();
  MapRun(*driver, base, 64);
  EXPECT_EQ(driver->areas(), 1u);
  EXPECT_EQ(KernelAreas(base, base + 64 * kPage), 1u);
}

TEST_F(HostAreas, TheTableCountsAsTheKernelCounts) {
  const std::unique_ptr<HostDriver> driver = Open(0);
  constexpr int kSlots = 40;
  const Address base = driver->Reserve(kSlots * kPage, kPage).value();
  std::vector<ChunkHandle> chunks;
  for (int i = 0; i < kSlots; ++i) chunks.push_back(driver->Create(kPage).value());
  std::mt19937_64 random(7);
  for (int step = 0; step < 3'000; ++step) {
    const Address at = base + random() % kSlots * kPage;
    switch (random() % 4) {
      case 0:
      case 1:  // mostly where it lies next to its neighbour in the file
        driver->Map(at, kPage, chunks[(at - base) / kPage]).IgnoreError();
        break;
      case 2:
        driver->SetAccess(at, (1 + random() % 4) * kPage).IgnoreError();
        break;
      default:
        driver->Unmap(at, kPage).IgnoreError();
    }
    ASSERT_EQ(driver->areas(), KernelAreas(base, base + kSlots * kPage)) << "step " << step;
    driver->CheckInvariants();
  }
}

TEST_F(HostAreas, MapAndSetAccessAndReserveAreRefusedAtTheLimitAndRecover) {
  const std::unique_ptr<HostDriver> driver = Open(20);
  const Address base = driver->Reserve(100 * kPage, kPage).value();
  const ChunkHandle chunk = driver->Create(kPage).value();
  const int mapped = MapWithGaps(*driver, base, 100, chunk);
  EXPECT_EQ(mapped, 10);  // each has vacant addresses behind it: 20 areas
  EXPECT_EQ(driver->areas(), 20u);
  EXPECT_TRUE(IsExhausted(driver->Reserve(kPage, kPage)));
  EXPECT_TRUE(Succeeds(driver->SetAccess(base, kPage))) << "needs no new area";
  ASSERT_TRUE(Succeeds(driver->Unmap(base + 2 * kPage, kPage)));
  EXPECT_TRUE(Succeeds(driver->Map(base + 2 * kPage, kPage, chunk)));
  EXPECT_TRUE(IsExhausted(driver->Map(base + 50 * kPage, kPage, chunk)));
  driver->CheckInvariants();
}

TEST_F(HostAreas, SetAccessThatWouldSplitAnAreaIsRefusedAtTheLimit) {
  const std::unique_ptr<HostDriver> driver = Open(2);
  const Address base = driver->Reserve(4 * kPage, kPage).value();
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(Succeeds(driver->Map(base + i * kPage, kPage, driver->Create(kPage).value())));
  }
  EXPECT_TRUE(IsExhausted(driver->SetAccess(base + kPage, kPage)));
  std::uint8_t byte = 0;
  EXPECT_TRUE(IsRefused(driver->Copy(base + kPage, &byte, 1, CopyDirection::kToHost)));
  EXPECT_TRUE(Succeeds(driver->SetAccess(base, 3 * kPage)));
  driver->CheckInvariants();
}

TEST_F(HostAreas, UnmapIsNotRefusedByTheLimit) {
  const std::unique_ptr<HostDriver> driver = Open(4);
  const Address base = driver->Reserve(64 * kPage, kPage).value();
  MapRun(*driver, base, 64);
  for (int i = 1; i < 63; i += 2) {
    ASSERT_TRUE(Succeeds(driver->Unmap(base + i * kPage, kPage))) << i;
  }
  EXPECT_EQ(driver->areas(), 63u);
  EXPECT_TRUE(IsExhausted(driver->Reserve(kPage, kPage)));
  EXPECT_TRUE(Succeeds(driver->Map(base + kPage, kPage, driver->Create(kPage).value())))
      << "replacing an area needs none";
}

TEST_F(HostAreas, DriversOfOneProcessShareTheLimit) {
  const std::unique_ptr<HostDriver> first = Open(10);
  const std::unique_ptr<HostDriver> second = Open(10);
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(Succeeds(first->Reserve(kPage, kPage)));
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(Succeeds(second->Reserve(kPage, kPage)));
  EXPECT_TRUE(IsExhausted(first->Reserve(kPage, kPage)));
  EXPECT_TRUE(IsExhausted(second->Reserve(kPage, kPage)));
}

TEST_F(HostAreas, AreasComeBackWhenADriverIsClosed) {
  for (int round = 0; round < 3; ++round) {
    const std::unique_ptr<HostDriver> driver = Open(4);
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(Succeeds(driver->Reserve(kPage, kPage)));
    ASSERT_TRUE(IsExhausted(driver->Reserve(kPage, kPage)));
  }
}

}  // namespace
}  // namespace thimble
