// The exact calls of the CUDA driver to libcuda: every function, argument and flag, in order. A
// real GPU sees the same calls, so review any change here against cuda.h.
#include <algorithm>
#include <regex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "allocator/driver/cuda_driver.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/conformance/simulated_cuda.h"
#include "tests/conformance/subject.h"

namespace thimble {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

std::vector<std::string>& Log() {
  static auto* const log = new std::vector<std::string>;
  return *log;
}

// Addresses and handles differ from run to run and do not matter here.
std::string Comparable(const std::string& line) {
  static const std::regex* const kChanging =
      new std::regex(" (pointer|handle|event|to|from)=[0-9a-fx]+");
  return std::regex_replace(line, *kChanging, "");
}

class CudaContract : public testing::Test {
 protected:
  CudaContract() {
    Log().clear();
    cuda_.Watch([](const char* line) { Log().push_back(Comparable(line)); });
    options_.library = kSimulatedLibcuda;
  }

  void Open() {
    driver_ = CudaDriver::Open(options_).value();
    granule_ = driver_->properties().granularity;
    stream_ = cuda_.NewStream();
    on_stream_ = absl::StrCat("stream=", stream_);
    Log().clear();
  }

  // The calls since the last check, without the calls around them that set the context, which must
  // be present.
  std::vector<std::string> Calls() {
    std::vector<std::string> calls;
    int depth = 0;
    for (const std::string& line : Log()) {
      if (line == "cuCtxPushCurrent device=0") {
        ++depth;
      } else if (line == "cuCtxPopCurrent") {
        --depth;
      } else {
        EXPECT_EQ(depth, 1) << line << " outside of the primary context";
        calls.push_back(line);
      }
    }
    EXPECT_EQ(depth, 0) << "the caller's context was not restored";
    Log().clear();
    return calls;
  }

  SimulatedCuda cuda_;
  CudaOptions options_;
  std::unique_ptr<CudaDriver> driver_;
  Bytes granule_ = 0;
  StreamId stream_{};
  std::string on_stream_;  // as the log has it
};

TEST_F(CudaContract, OpenAndClose) {
  driver_ = CudaDriver::Open(options_).value();
  EXPECT_THAT(Log(), ElementsAre("cuInit flags=0", "cuDeviceGetCount", "cuDeviceGet ordinal=0",
                                 "cuDeviceGetAttribute attribute=102 device=0",
                                 "cuDeviceGetName device=0", "cuDeviceTotalMem device=0",
                                 "cuMemGetAllocationGranularity device=0 handle_types=0 option=0",
                                 "cuDevicePrimaryCtxRetain device=0"));
  Log().clear();
  driver_.reset();
  EXPECT_THAT(Log(), ElementsAre("cuCtxPushCurrent device=0", "cuCtxPopCurrent",
                                 "cuDevicePrimaryCtxRelease device=0"));
}

TEST_F(CudaContract, LifeOfAMapping) {
  Open();
  const Address base = driver_->Reserve(4 * granule_, 2 * granule_).value();
  const ChunkHandle chunk = driver_->Create(granule_).value();
  ASSERT_TRUE(Succeeds(driver_->Map(base, granule_, chunk)));
  ASSERT_TRUE(Succeeds(driver_->SetAccess(base, granule_)));
  ASSERT_TRUE(Succeeds(driver_->Unmap(base, granule_)));
  ASSERT_TRUE(Succeeds(driver_->Destroy(chunk)));
  ASSERT_TRUE(Succeeds(driver_->Release(base, 4 * granule_)));
  EXPECT_THAT(Calls(),
              ElementsAre("cuMemAddressReserve size=8388608 alignment=4194304 hint=0 flags=0",
                          "cuMemCreate size=2097152 device=0 handle_types=0 flags=0",
                          "cuMemMap size=2097152 offset=0 flags=0",
                          "cuMemSetAccess size=2097152 device 0:3", "cuMemUnmap size=2097152",
                          "cuMemRelease", "cuMemAddressFree size=8388608"));
}

TEST_F(CudaContract, PeersGetAccessToo) {
  options_.ordinal = 1;
  options_.peers = {0};
  driver_ = CudaDriver::Open(options_).value();
  EXPECT_THAT(Log(), testing::Contains("cuDeviceCanAccessPeer device=0 peer=1"));
  const Bytes granule = driver_->properties().granularity;
  const Address base = driver_->Reserve(granule, granule).value();
  ASSERT_TRUE(Succeeds(driver_->Map(base, granule, driver_->Create(granule).value())));
  Log().clear();
  ASSERT_TRUE(Succeeds(driver_->SetAccess(base, granule)));
  EXPECT_THAT(Log(),
              ElementsAre("cuCtxPushCurrent device=1",
                          "cuMemSetAccess size=2097152 device 1:3 device 0:3", "cuCtxPopCurrent"));
}

TEST_F(CudaContract, ShareableChunksAskForDescriptors) {
  options_.shareable = true;
  Open();
  const ChunkHandle chunk = driver_->Create(granule_).value();
  EXPECT_THAT(Calls(), ElementsAre("cuMemCreate size=2097152 device=0 handle_types=1 flags=0"));
  EXPECT_TRUE(Succeeds(driver_->Export(chunk)));
  EXPECT_THAT(Calls(), ElementsAre("cuMemExportToShareableHandle type=1"));
}

TEST_F(CudaContract, PrivateChunksCannotBeExported) {
  Open();
  EXPECT_TRUE(IsRefused(driver_->Export(driver_->Create(granule_).value())));
}

TEST_F(CudaContract, CopiesHaveAStreamOfTheirOwnForEachDirection) {
  Open();
  const Address base = driver_->Reserve(granule_, granule_).value();
  ASSERT_TRUE(Succeeds(driver_->Map(base, granule_, driver_->Create(granule_).value())));
  ASSERT_TRUE(Succeeds(driver_->SetAccess(base, granule_)));
  char byte = 1;
  const auto copy = [&](CopyDirection direction) {
    Log().clear();
    EXPECT_TRUE(Succeeds(driver_->Copy(base, &byte, 1, direction)));
    return Calls();
  };
  const auto makes_a_stream = testing::Contains(StartsWith("cuStreamCreate"));
  EXPECT_THAT(copy(CopyDirection::kToDevice), makes_a_stream);
  EXPECT_THAT(copy(CopyDirection::kToHost), makes_a_stream);
  const auto copies = [](const std::string& call) {
    return ElementsAre(StartsWith(call), StartsWith("cuStreamSynchronize"));
  };
  const std::vector<std::string> in = copy(CopyDirection::kToDevice);
  const std::vector<std::string> out = copy(CopyDirection::kToHost);
  EXPECT_THAT(in, copies("cuMemcpyHtoDAsync size=1"));
  EXPECT_THAT(out, copies("cuMemcpyDtoHAsync size=1"));
  EXPECT_NE(in.back(), out.back()) << "another stream";
}

TEST_F(CudaContract, PointsAreEventsThatAreUsedAgain) {
  Open();
  const StreamSeq first = driver_->Record(stream_).value();
  EXPECT_THAT(Calls(), ElementsAre("cuEventCreate flags=2", "cuEventRecord " + on_stream_));
  EXPECT_TRUE(driver_->Passed(stream_, first).value());
  EXPECT_THAT(Calls(), ElementsAre("cuEventQuery"));
  EXPECT_TRUE(driver_->Passed(stream_, first).value());
  ASSERT_TRUE(Succeeds(driver_->Wait(stream_, first)));
  EXPECT_THAT(Calls(), IsEmpty()) << "a point that is known to be passed costs nothing";
  ASSERT_TRUE(Succeeds(driver_->Record(stream_)));
  EXPECT_THAT(Calls(), ElementsAre("cuEventRecord " + on_stream_));
  ASSERT_TRUE(Succeeds(driver_->Wait(stream_, StreamSeq(2))));
  EXPECT_THAT(Calls(), ElementsAre("cuEventSynchronize"));
}

TEST_F(CudaContract, RecordingWithoutEverAskingUsesAFewEvents) {
  Open();
  for (int i = 0; i < 1'000; ++i) ASSERT_TRUE(Succeeds(driver_->Record(stream_)));
  EXPECT_LE(cuda_.counts().events, 2u);
}

TEST_F(CudaContract, EventsGrowOnlyWithPendingWorkAndAreKept) {
  Open();
  for (int round = 0; round < 3; ++round) {
    cuda_.Hold(stream_);
    StreamSeq last;
    for (int i = 0; i < 10; ++i) last = driver_->Record(stream_).value();
    EXPECT_EQ(cuda_.counts().events, 10u);
    EXPECT_FALSE(driver_->Passed(stream_, last - 9).value());
    cuda_.Release(stream_);
    EXPECT_TRUE(driver_->Passed(stream_, last).value());
  }
}

TEST_F(CudaContract, CallersContextStaysCurrent) {
  options_.ordinal = 1;
  const auto other = CudaDriver::Open(options_).value();
  options_.ordinal = 0;
  Open();
  CUcontext callers = nullptr;
  ASSERT_EQ(
      cuda_.Symbol<decltype(cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain")(&callers, 1),
      CUDA_SUCCESS);
  const auto push = cuda_.Symbol<decltype(cuCtxPushCurrent_v2)>("cuCtxPushCurrent_v2");
  const auto current = cuda_.Symbol<decltype(cuCtxGetCurrent)>("cuCtxGetCurrent");
  ASSERT_EQ(push(callers), CUDA_SUCCESS);
  ASSERT_TRUE(Succeeds(driver_->Create(granule_)));
  EXPECT_FALSE(driver_->Create(1).ok());
  ASSERT_TRUE(Succeeds(driver_->Record(stream_)));
  CUcontext now = nullptr;
  ASSERT_EQ(current(&now), CUDA_SUCCESS);
  EXPECT_EQ(now, callers);
  cuda_.Symbol<decltype(cuCtxPopCurrent_v2)>("cuCtxPopCurrent_v2")(&now);
}

TEST_F(CudaContract, EveryThreadCanCall) {
  Open();
  std::thread([this] {
    EXPECT_TRUE(Succeeds(driver_->GetMemoryInfo()));
    EXPECT_TRUE(Succeeds(driver_->Record(stream_)));
  }).join();
}

TEST_F(CudaContract, ErrorsCarryTheNameCudaGivesThem) {
  Open();
  const absl::Status refused = driver_->Create(1).status();
  EXPECT_THAT(std::string(refused.message()), HasSubstr("cuMemCreate: CUDA_ERROR_INVALID_VALUE"));
  const absl::Status exhausted = driver_->Create(kTiB).status();
  EXPECT_THAT(std::string(exhausted.message()), HasSubstr("CUDA_ERROR_OUT_OF_MEMORY"));
}

TEST_F(CudaContract, ErrorsMeanWhatDriverHPromises) {
  Open();
  const std::vector<std::pair<CUresult, absl::StatusCode>> meanings = {
      {CUDA_ERROR_OUT_OF_MEMORY, absl::StatusCode::kResourceExhausted},
      {CUDA_ERROR_INVALID_VALUE, absl::StatusCode::kInvalidArgument},
      {CUDA_ERROR_INVALID_HANDLE, absl::StatusCode::kInvalidArgument},
      {CUDA_ERROR_NOT_SUPPORTED, absl::StatusCode::kUnimplemented},
      {CUDA_ERROR_DEINITIALIZED, absl::StatusCode::kUnavailable},
      {CUDA_ERROR_INVALID_CONTEXT, absl::StatusCode::kUnavailable},
      {CUDA_ERROR_ECC_UNCORRECTABLE, absl::StatusCode::kUnavailable},
      {CUDA_ERROR_ILLEGAL_ADDRESS, absl::StatusCode::kUnavailable},
      {CUDA_ERROR_UNKNOWN, absl::StatusCode::kInternal},
  };
  for (const auto& [result, code] : meanings) {
    const char* name = nullptr;
    cuda_.Symbol<decltype(cuGetErrorName)>("cuGetErrorName")(result, &name);
    for (const int call : {0, 1}) {  // making the context current, and the function itself
      cuda_.FailAfter(call, name);
      EXPECT_TRUE(HasCode(driver_->GetMemoryInfo().status(), code)) << call;
    }
  }
  EXPECT_TRUE(Succeeds(driver_->GetMemoryInfo()));
}

// Each call that a point needs fails once: no event is lost and no number is skipped.
TEST_F(CudaContract, FailingEventCallsLeaveNoTrace) {
  Open();
  for (int round = 0; round < 3; ++round) {
    const StreamSeq point = driver_->Record(stream_).value();
    // cuCtxPushCurrent, then cuEventQuery, then cuEventRecord.
    for (const int call : {0, 1, 2}) {
      cuda_.FailAfter(call);
      EXPECT_FALSE(driver_->Record(stream_).ok()) << call;
      cuda_.SetFault("");
      EXPECT_TRUE(IsRefused(driver_->Passed(stream_, point + 1))) << call;
    }
    EXPECT_TRUE(driver_->Passed(stream_, point).value());
    const StreamSeq next = driver_->Record(stream_).value();
    EXPECT_EQ(next, point + 1);
    for (const int call : {0, 1}) {
      cuda_.FailAfter(call);
      EXPECT_FALSE(driver_->Passed(stream_, next).ok()) << call;
      cuda_.FailAfter(call);
      EXPECT_FALSE(driver_->Wait(stream_, next).ok()) << call;
    }
    EXPECT_TRUE(Succeeds(driver_->Wait(stream_, next)));
  }
  EXPECT_LE(cuda_.counts().events, 2u);
}

// P6: at the end of a process libcuda may be gone first. One call finds that out; none follows.
TEST_F(CudaContract, NothingIsCalledOnceTheDriverIsGone) {
  Open();
  ASSERT_TRUE(Succeeds(driver_->Record(stream_)));
  Log().clear();
  cuda_.SetFault("*@1+=CUDA_ERROR_DEINITIALIZED");
  EXPECT_TRUE(HasCode(driver_->Create(granule_).status(), absl::StatusCode::kUnavailable));
  driver_.reset();
  const auto push = testing::StartsWith("cuCtxPushCurrent");
  EXPECT_THAT(Log(), ElementsAre(push, push));
}

}  // namespace
}  // namespace thimble
