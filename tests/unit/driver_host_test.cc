// What is particular to the host driver: options, sparseness, physical lookup, privacy, teardown.
#include <dirent.h>
#include <sys/resource.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "allocator/driver/host_driver.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thimble {
namespace {

using testing::HasSubstr;

constexpr Bytes kPage = 4 * kKiB;

std::unique_ptr<HostDriver> Open(Bytes granularity = kPage, Bytes total_bytes = kGiB) {
  HostOptions options;
  options.granularity = granularity;
  options.total_bytes = total_bytes;
  return HostDriver::Open(options).value();
}

// A new chunk at `address`, open for use.
void Back(HostDriver& driver, Address address, Bytes bytes) {
  ASSERT_TRUE(driver.Map(address, bytes, driver.Create(bytes).value()).ok());
  ASSERT_TRUE(driver.SetAccess(address, bytes).ok());
}

int OpenDescriptors() {
  DIR* const folder = opendir("/proc/self/fd");
  int count = 0;
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

// The flags of the kernel's area at `address`, as /proc/self/smaps prints them.
std::string AreaFlags(Address address) {
  std::ifstream areas("/proc/self/smaps");
  std::string line;
  bool inside = false;
  while (std::getline(areas, line)) {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " ", &first, &last) == 2) {
      inside = first <= address.value() && address.value() < last;
    } else if (inside && line.rfind("VmFlags:", 0) == 0) {
      return line;
    }
  }
  return "";
}

TEST(HostDriver, NonsensicalOptionsAreRefused) {
  for (const Bytes granularity : {Bytes{0}, Bytes{1}, kPage / 2, 3 * kPage}) {
    HostOptions options;
    options.granularity = granularity;
    EXPECT_EQ(HostDriver::Open(options).status().code(), absl::StatusCode::kInvalidArgument);
  }
  for (const Bytes total : {Bytes{0}, (Bytes{1} << 56) + 1, ~Bytes{0}}) {
    HostOptions options;
    options.total_bytes = total;
    EXPECT_EQ(HostDriver::Open(options).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(HostDriver, LargeDevicesCostNothingUntilTouched) {
  const auto driver = Open(2 * kMiB, 80 * kGiB);
  const Address base = driver->Reserve(80 * kGiB, 2 * kMiB).value();
  Back(*driver, base, 40 * kGiB);
  Back(*driver, base + 40 * kGiB, 40 * kGiB);
  volatile char* const last = static_cast<char*>(ToPointer(base + 80 * kGiB - 1));
  *last = 1;
  EXPECT_EQ(*last, 1);
}

TEST(HostDriver, AliasesTranslateToTheSameByte) {
  const auto driver = Open();
  const Address base = driver->Reserve(4 * kPage, kPage).value();
  const ChunkHandle chunk = driver->Create(kPage).value();
  ASSERT_TRUE(driver->Map(base, kPage, chunk).ok());
  ASSERT_TRUE(driver->Map(base + 2 * kPage, kPage, chunk).ok());
  EXPECT_EQ(driver->Translate(base + 5).value(), driver->Translate(base + 2 * kPage + 5).value());
  EXPECT_FALSE(driver->Translate(base + kPage).ok());
  EXPECT_FALSE(driver->Translate(Address()).ok());
}

TEST(HostDriver, ChunksMadeInOrderAreOneRangeOfTheFile) {
  const auto driver = Open();
  const Address base = driver->Reserve(8 * kPage, kPage).value();
  for (int i = 0; i < 8; ++i) Back(*driver, base + i * kPage, kPage);
  const auto parts = driver->TranslateRange(base, 8 * kPage);
  ASSERT_TRUE(parts.ok());
  ASSERT_EQ(parts->size(), 1u);
  EXPECT_EQ(parts->front().bytes, 8 * kPage);
}

TEST(HostDriver, DestroyedBytesAreZeroForTheNextOwner) {
  const auto driver = Open();
  const Address base = driver->Reserve(kPage, kPage).value();
  volatile char* const byte = static_cast<char*>(ToPointer(base));
  for (int round = 0; round < 3; ++round) {
    const ChunkHandle chunk = driver->Create(kPage).value();
    ASSERT_TRUE(driver->Map(base, kPage, chunk).ok());
    ASSERT_TRUE(driver->SetAccess(base, kPage).ok());
    EXPECT_EQ(driver->Translate(base).value(), 0u) << "the same bytes of the file";
    EXPECT_EQ(*byte, 0);
    *byte = 1;
    ASSERT_TRUE(driver->Unmap(base, kPage).ok());
    ASSERT_TRUE(driver->Destroy(chunk).ok());
  }
}

TEST(HostDriver, ChunksAreNeverPartOfACoreDump) {
  const auto driver = Open();
  const Address base = driver->Reserve(3 * kPage, kPage).value();
  ASSERT_TRUE(driver->Map(base + kPage, kPage, driver->Create(kPage).value()).ok());
  EXPECT_THAT(AreaFlags(base + kPage), HasSubstr(" dd")) << "no access";
  ASSERT_TRUE(driver->SetAccess(base + kPage, kPage).ok());
  EXPECT_THAT(AreaFlags(base + kPage), HasSubstr(" dd")) << "with access";
}

TEST(HostDriver, ClosingLeavesNothingBehind) {
  const int descriptors = OpenDescriptors();
  Address base;
  {
    const auto driver = Open();
    base = driver->Reserve(4 * kPage, kPage).value();
    Back(*driver, base, kPage);
    Back(*driver, base + 2 * kPage, 2 * kPage);
    EXPECT_EQ(OpenDescriptors(), descriptors + 1);
  }
  EXPECT_EQ(OpenDescriptors(), descriptors);
  EXPECT_EQ(AreaFlags(base), "");
}

TEST(HostDriver, ReleasedAlignmentPaddingIsGivenBack) {
  const auto driver = Open();
  const Address base = driver->Reserve(kPage, kGiB).value();
  EXPECT_EQ(base % kGiB, 0u);
  EXPECT_EQ(AreaFlags(base + kPage), "") << "the padding behind is not held";
  ASSERT_TRUE(driver->Release(base, kPage).ok());
  EXPECT_EQ(AreaFlags(base), "");
}

// ftruncate beyond the limit raises a signal, not an error, so the driver must not call it.
TEST(HostDriverDeathTest, ALimitOnFileSizesIsReported) {
  const auto open_under_limit = [] {
    const rlimit limit = {kGiB, kGiB};
    setrlimit(RLIMIT_FSIZE, &limit);
    std::_Exit(absl::IsResourceExhausted(HostDriver::Open({}).status()) ? 0 : 1);
  };
  EXPECT_EXIT(open_under_limit(), testing::ExitedWithCode(0), "");
}

TEST(HostDriverDeathTest, TooManyOpenFilesAreReported) {
  const auto open_under_limit = [] {
    const rlimit limit = {0, 0};
    setrlimit(RLIMIT_NOFILE, &limit);
    std::_Exit(absl::IsResourceExhausted(HostDriver::Open({}).status()) ? 0 : 1);
  };
  EXPECT_EXIT(open_under_limit(), testing::ExitedWithCode(0), "");
}

TEST(HostDriver, RefusalsNameTheRule) {
  const auto driver = Open(kPage, 2 * kPage);
  EXPECT_THAT(std::string(driver->Create(1).status().message()), HasSubstr("R5"));
  EXPECT_THAT(std::string(driver->Create(3 * kPage).status().message()),
              HasSubstr("8192 of 8192 are free"));
  EXPECT_THAT(std::string(driver->Wait(StreamId{1}, StreamSeq(3)).message()),
              HasSubstr("never recorded"));
}

}  // namespace
}  // namespace thimble
