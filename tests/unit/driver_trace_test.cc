// TraceDriver: one line per call, with arguments and result.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/driver/driver_call.h"
#include "allocator/driver/host_driver.h"
#include "allocator/driver/trace_driver.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thimble {
namespace {

using testing::ElementsAre;
using testing::StartsWith;

TEST(TraceDriver, EveryCallIsOneLine) {
  HostOptions options;
  options.granularity = 4096;
  options.total_bytes = 8192;
  const auto host = HostDriver::Open(options).value();
  std::vector<std::string> lines;
  TraceDriver driver(*host, [&lines](const std::string& line) { lines.push_back(line); });
  char byte = 0;
  const Address base = driver.Reserve(4096, 8192).value();
  const ChunkHandle chunk = driver.Create(4096).value();
  ASSERT_TRUE(driver.Map(base, 4096, chunk).ok());
  ASSERT_TRUE(driver.SetAccess(base, 4096).ok());
  ASSERT_TRUE(driver.Copy(base, &byte, 1, CopyDirection::kToDevice).ok());
  ASSERT_TRUE(driver.Copy(base, &byte, 1, CopyDirection::kToHost).ok());
  ASSERT_TRUE(driver.Record(StreamId{31}).ok());
  ASSERT_TRUE(driver.Passed(StreamId{31}, 1).ok());
  ASSERT_TRUE(driver.Wait(StreamId{31}, 1).ok());
  ASSERT_TRUE(driver.GetMemoryInfo().ok());
  ASSERT_TRUE(driver.Unmap(base, 4096).ok());
  ASSERT_TRUE(driver.Destroy(chunk).ok());
  ASSERT_TRUE(driver.Release(base, 4096).ok());
  const std::string at = absl::StrCat("0x", absl::Hex(base));
  EXPECT_THAT(lines,
              ElementsAre("Reserve(bytes=4096, alignment=8192) = " + at, "Create(bytes=4096) = 1",
                          "Map(address=" + at + ", bytes=4096, chunk=1) = OK",
                          "SetAccess(address=" + at + ", bytes=4096) = OK",
                          "Copy(address=" + at + ", bytes=1, to=device) = OK",
                          "Copy(address=" + at + ", bytes=1, to=host) = OK",
                          "Record(stream=0x1f) = 1", "Passed(stream=0x1f, point=1) = yes",
                          "Wait(stream=0x1f, point=1) = OK", "GetMemoryInfo() = free 4096 of 8192",
                          "Unmap(address=" + at + ", bytes=4096) = OK", "Destroy(chunk=1) = OK",
                          "Release(address=" + at + ", bytes=4096) = OK"));
}

TEST(TraceDriver, FailuresAreWrittenWithTheirReason) {
  const auto host = HostDriver::Open({}).value();
  std::string last;
  TraceDriver driver(*host, [&last](const std::string& line) { last = line; });
  EXPECT_FALSE(driver.Create(1).ok());
  EXPECT_THAT(last, StartsWith("Create(bytes=1) = INVALID_ARGUMENT: R5"));
  EXPECT_FALSE(driver.Wait(StreamId{}, 1).ok());
  EXPECT_THAT(last, StartsWith("Wait(stream=0x0, point=1) = INVALID_ARGUMENT"));
}

TEST(DriverCall, NamesAreThoseOfTheFunctions) {
  EXPECT_STREQ(DriverCallName(DriverCall::kReserve), "Reserve");
  EXPECT_STREQ(DriverCallName(DriverCall::kSetAccess), "SetAccess");
  EXPECT_STREQ(DriverCallName(DriverCall::kGetMemoryInfo), "GetMemoryInfo");
}

TEST(DriverCall, SetsHoldWhatWasPutIn) {
  constexpr DriverCallSet kSet = {DriverCall::kMap, DriverCall::kUnmap};
  static_assert(kSet.Contains(DriverCall::kMap) && !kSet.Contains(DriverCall::kCreate));
  static_assert(!DriverCallSet().Contains(DriverCall::kReserve));
  for (const DriverCall call : kAllDriverCalls) EXPECT_TRUE(DriverCallSet::All().Contains(call));
}

}  // namespace
}  // namespace thimble
