// If something is missing on a user's machine, the status names it, and a driver that could not be
// opened leaves nothing behind.
#include "allocator/driver/cuda_driver.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/conformance/simulated_cuda.h"
#include "tests/conformance/subject.h"

namespace thimble {
namespace {

using testing::HasSubstr;

class CudaOpen : public testing::Test {
 protected:
  CudaOpen() { options_.library = kSimulatedLibcuda; }

  absl::Status Open() { return CudaDriver::Open(options_).status(); }

  void ExpectFailure(absl::StatusCode code, const std::string& words) {
    const absl::Status status = Open();
    EXPECT_TRUE(HasCode(status, code));
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
    EXPECT_EQ(cuda_.counts().contexts, 0u);
  }

  SimulatedCuda cuda_;
  CudaOptions options_;
};

TEST_F(CudaOpen, ReadsThePropertiesOfTheDevice) {
  cuda_.Restart("name:Some GPU,granularity:64KiB,memory:3GiB");
  const auto driver = CudaDriver::Open(options_);
  ASSERT_TRUE(Succeeds(driver));
  EXPECT_EQ((*driver)->properties().name, "Some GPU");
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
  cuda_.SetFault("cuInit@1=CUDA_ERROR_SYSTEM_DRIVER_MISMATCH");
  ExpectFailure(absl::StatusCode::kUnavailable, "cuInit: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH");
}

TEST_F(CudaOpen, MachineWithoutADeviceIsUnavailable) {
  cuda_.Restart("gpus:0");
  ExpectFailure(absl::StatusCode::kUnavailable, "CUDA_ERROR_NO_DEVICE");
}

TEST_F(CudaOpen, OrdinalOutOfRangeIsRefusedWithTheRange) {
  for (const int ordinal : {-1, 2, 1000}) {
    options_.ordinal = ordinal;
    ExpectFailure(absl::StatusCode::kInvalidArgument, "there are 2");
  }
}

TEST_F(CudaOpen, DeviceWithoutVirtualMemoryIsUnavailable) {
  cuda_.Restart("vmm:off");
  ExpectFailure(absl::StatusCode::kUnavailable, "virtual memory management");
}

TEST_F(CudaOpen, NonsensicalGranularityIsAnError) {
  cuda_.Restart("granularity:3MiB");
  ExpectFailure(absl::StatusCode::kInternal, "cuMemGetAllocationGranularity");
}

TEST_F(CudaOpen, ShareableNeedsDescriptors) {
  cuda_.Restart("descriptors:off");
  EXPECT_TRUE(Succeeds(Open()));
  options_.shareable = true;
  ExpectFailure(absl::StatusCode::kUnavailable, "file descriptors");
}

TEST_F(CudaOpen, PeersMustExistAndReachTheDevice) {
  options_.peers = {5};
  ExpectFailure(absl::StatusCode::kInvalidArgument, "device 5 does not exist");
  options_.peers = {1};
  EXPECT_TRUE(Succeeds(Open()));
  cuda_.Restart("peers:off");
  ExpectFailure(absl::StatusCode::kInvalidArgument, "device 1 cannot access");
}

TEST_F(CudaOpen, ContextsThatCannotBeMadeAreAnError) {
  cuda_.SetFault("cuDevicePrimaryCtxRetain@1");
  EXPECT_FALSE(Open().ok());
  EXPECT_EQ(cuda_.counts().contexts, 0u);
}

TEST_F(CudaOpen, EveryCallMayFailAndNothingIsLeftBehind) {
  options_.shareable = true;
  options_.peers = {1};
  int call = 1;  // after cuInit, which has a test of its own
  for (;; ++call) {
    cuda_.FailAfter(call);
    const auto driver = CudaDriver::Open(options_);
    cuda_.SetFault("");
    if (driver.ok()) break;
    EXPECT_TRUE(IsExhausted(driver)) << call;
    EXPECT_EQ(cuda_.counts().contexts, 0u) << call;
  }
  EXPECT_EQ(call, 12);
}

TEST_F(CudaOpen, ClosingGivesEverythingBack) {
  for (int round = 0; round < 3; ++round) {
    const auto driver = CudaDriver::Open(options_).value();
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(Succeeds(driver->Record(StreamId{})));
    EXPECT_EQ(cuda_.counts().contexts, 1u);
    EXPECT_GT(cuda_.counts().events, 0u);
  }
  EXPECT_EQ(cuda_.counts().contexts, 0u);
  EXPECT_EQ(cuda_.counts().events, 0u);
}

TEST_F(CudaOpen, TwoDriversOfOneDeviceShareItsPrimaryContext) {
  auto first = CudaDriver::Open(options_).value();
  auto second = CudaDriver::Open(options_).value();
  EXPECT_EQ(cuda_.counts().contexts, 2u);
  first.reset();
  EXPECT_TRUE(Succeeds(second->Create(second->properties().granularity)));
}

}  // namespace
}  // namespace thimble
