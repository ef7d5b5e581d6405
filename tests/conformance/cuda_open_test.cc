// Everything that can be missing on a user's machine gives a status that names it, and a driver
// that could not be opened leaves nothing behind.
#include "allocator/driver/cuda_driver.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/conformance/fake_libcuda.h"
#include "tests/conformance/subject.h"

namespace thimble {
namespace {

using testing::HasSubstr;

class CudaOpen : public testing::Test {
 protected:
  CudaOpen() { options_.library = kFakeLibcuda; }

  absl::Status Open() { return CudaDriver::Open(options_).status(); }

  void ExpectFailure(absl::StatusCode code, const std::string& words) {
    const absl::Status status = Open();
    EXPECT_TRUE(HasCode(status, code));
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
    EXPECT_EQ(fake_.counts().retained_contexts, 0);
  }

  FakeCuda fake_;
  CudaOptions options_;
};

TEST_F(CudaOpen, ReadsThePropertiesOfTheDevice) {
  fake_.controls().granularity = 64 * kKiB;
  fake_.controls().total_bytes = 3 * kGiB;
  const auto driver = CudaDriver::Open(options_);
  ASSERT_TRUE(Succeeds(driver));
  EXPECT_EQ((*driver)->properties().name, "Fake GPU");
  EXPECT_EQ((*driver)->properties().granularity, 64 * kKiB);
  EXPECT_EQ((*driver)->properties().total_bytes, 3 * kGiB);
}

TEST_F(CudaOpen, MissingLibraryIsNamed) {
  options_.library = "libcuda_of_nobody.so.1";
  ExpectFailure(absl::StatusCode::kUnavailable, "libcuda_of_nobody.so.1");
}

TEST_F(CudaOpen, MissingSymbolIsNamed) {
  options_.library = kLibcudaWithoutSetAccess;
  ExpectFailure(absl::StatusCode::kUnavailable, "has no cuMemSetAccess");
}

TEST_F(CudaOpen, FailingInitIsNamed) {
  fake_.controls().init_result = CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
  ExpectFailure(absl::StatusCode::kUnavailable, "cuInit: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH");
}

TEST_F(CudaOpen, MachineWithoutADeviceIsUnavailable) {
  fake_.controls().device_count = 0;
  ExpectFailure(absl::StatusCode::kUnavailable, "CUDA_ERROR_NO_DEVICE");
}

TEST_F(CudaOpen, OrdinalOutOfRangeIsRefusedWithTheRange) {
  for (const int ordinal : {-1, 2, 1000}) {
    options_.ordinal = ordinal;
    ExpectFailure(absl::StatusCode::kInvalidArgument, "there are 2");
  }
}

TEST_F(CudaOpen, DeviceWithoutVirtualMemoryIsUnavailable) {
  fake_.controls().vmm_supported = 0;
  ExpectFailure(absl::StatusCode::kUnavailable, "virtual memory management");
}

TEST_F(CudaOpen, GranularityThatMakesNoSenseIsAnError) {
  fake_.controls().granularity = 3 * kMiB;
  ExpectFailure(absl::StatusCode::kInternal, "cuMemGetAllocationGranularity");
}

TEST_F(CudaOpen, ShareableNeedsDescriptors) {
  fake_.controls().descriptors_supported = 0;
  EXPECT_TRUE(Succeeds(Open()));
  options_.shareable = true;
  ExpectFailure(absl::StatusCode::kUnavailable, "file descriptors");
}

TEST_F(CudaOpen, PeersMustExistAndReachTheDevice) {
  options_.peers = {5};
  ExpectFailure(absl::StatusCode::kInvalidArgument, "device 5 does not exist");
  options_.peers = {1};
  EXPECT_TRUE(Succeeds(Open()));
  fake_.controls().peers_reachable = 0;
  ExpectFailure(absl::StatusCode::kInvalidArgument, "device 1 cannot access");
}

TEST_F(CudaOpen, ContextsThatCannotBeMadeAreAnError) {
  fake_.controls().total_bytes = 0;  // the fake's memory refuses
  EXPECT_FALSE(Open().ok());
  EXPECT_EQ(fake_.counts().retained_contexts, 0);
}

TEST_F(CudaOpen, EveryCallMayFailAndNothingIsLeftBehind) {
  options_.shareable = true;
  options_.peers = {1};
  int call = 0;
  for (;; ++call) {
    fake_.controls().fail_call = call;
    const auto driver = CudaDriver::Open(options_);
    fake_.controls().fail_call = -1;
    if (driver.ok()) break;
    EXPECT_TRUE(IsExhausted(driver)) << call;
    EXPECT_EQ(fake_.counts().retained_contexts, 0) << call;
  }
  EXPECT_EQ(call, 11);  // after cuInit, which has a test of its own
}

TEST_F(CudaOpen, ClosingGivesEverythingBack) {
  for (int round = 0; round < 3; ++round) {
    const auto driver = CudaDriver::Open(options_).value();
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(Succeeds(driver->Record(StreamId{1})));
    EXPECT_EQ(fake_.counts().retained_contexts, 1);
    EXPECT_GT(fake_.counts().live_events, 0);
  }
  EXPECT_EQ(fake_.counts().retained_contexts, 0);
  EXPECT_EQ(fake_.counts().live_events, 0);
}

TEST_F(CudaOpen, TwoDriversOfOneDeviceShareItsPrimaryContext) {
  auto first = CudaDriver::Open(options_).value();
  auto second = CudaDriver::Open(options_).value();
  EXPECT_EQ(fake_.counts().retained_contexts, 2);
  first.reset();
  EXPECT_TRUE(Succeeds(second->Create(second->properties().granularity)));
}

}  // namespace
}  // namespace thimble
