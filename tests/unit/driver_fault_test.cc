// FaultDriver: exactly the planned calls fail, and they never reach the base.
#include <memory>
#include <vector>

#include "allocator/driver/host_driver.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/drivers/fault_driver.h"

namespace thimble {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr Bytes kPage = 4 * kKiB;

class FaultDriverTest : public testing::Test {
 protected:
  FaultDriverTest() {
    HostOptions options;
    options.granularity = kPage;
    host_ = HostDriver::Open(options).value();
    faults_ = std::make_unique<FaultDriver>(*host_);
  }

  // Which of the next `count` Records fail.
  std::vector<int> FailingRecords(int count) {
    std::vector<int> failing;
    for (int i = 0; i < count; ++i) {
      if (!faults_->Record(StreamId{}).ok()) failing.push_back(i);
    }
    return failing;
  }

  alignas(kPage) char page_[kPage] = {};
  std::unique_ptr<HostDriver> host_;
  std::unique_ptr<FaultDriver> faults_;
};

TEST_F(FaultDriverTest, NothingFailsUntilArmed) { EXPECT_THAT(FailingRecords(10), ElementsAre()); }

TEST_F(FaultDriverTest, TheChosenCallFailsOnce) {
  faults_->FailCall(3);
  EXPECT_THAT(FailingRecords(10), ElementsAre(3));
  faults_->FailCall(0);
  EXPECT_THAT(FailingRecords(10), ElementsAre(0)) << "counted anew";
  EXPECT_EQ(faults_->failures(), 2u);
}

TEST_F(FaultDriverTest, EveryNthFails) {
  faults_->FailEvery(3);
  EXPECT_THAT(FailingRecords(10), ElementsAre(2, 5, 8));
}

TEST_F(FaultDriverTest, StickyFaultsLastUntilDisarmed) {
  faults_->Arm({/*first=*/2, /*every=*/1});
  EXPECT_THAT(FailingRecords(5), ElementsAre(2, 3, 4));
  faults_->Disarm();
  EXPECT_THAT(FailingRecords(5), ElementsAre());
}

TEST_F(FaultDriverTest, OnlyTheChosenKindIsCountedAndFails) {
  faults_->Arm({/*first=*/1, /*every=*/0, {DriverCall::kCreate}});
  EXPECT_THAT(FailingRecords(5), ElementsAre());
  EXPECT_TRUE(faults_->Create(kPage).ok());
  EXPECT_FALSE(faults_->Create(kPage).ok());
  EXPECT_TRUE(faults_->Create(kPage).ok());
  faults_->FailAll(DriverCall::kRecord);
  EXPECT_THAT(FailingRecords(2), ElementsAre(0, 1));
  EXPECT_TRUE(faults_->Create(kPage).ok());
}

TEST_F(FaultDriverTest, TheCodeIsTheRequestedOneAndTheMessageSaysItIsInjected) {
  faults_->FailCall(0);
  const absl::Status exhausted = faults_->Create(kPage).status();
  EXPECT_EQ(exhausted.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(exhausted.message()), HasSubstr("injected fault: Create, call 0"));
  FaultPlan plan;
  plan.code = absl::StatusCode::kUnavailable;
  faults_->Arm(plan);
  EXPECT_EQ(faults_->Create(kPage).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(FaultDriverTest, AFailedCallNeverReachedTheBase) {
  const Address base = faults_->Reserve(kPage, kPage).value();
  const ChunkHandle chunk = faults_->Create(kPage).value();
  faults_->FailAll(DriverCall::kMap);
  EXPECT_FALSE(faults_->Map(base, kPage, chunk).ok());
  EXPECT_FALSE(host_->Translate(base).ok());
  faults_->Disarm();
  EXPECT_TRUE(faults_->Map(base, kPage, chunk).ok());
}

// Every one of them can fail, and is counted whether it fails or not.
TEST_F(FaultDriverTest, EveryKindOfCallCanFail) {
  char byte = 0;
  for (const DriverCall call : kAllDriverCalls) {
    faults_->FailAll(call);
    const std::uint64_t failures = faults_->failures();
    const Address base = faults_->Reserve(kPage, kPage).value_or(Address());
    const ChunkHandle chunk = faults_->Create(kPage).value_or(ChunkHandle{});
    faults_->Map(base, kPage, chunk).IgnoreError();
    faults_->SetAccess(base, kPage).IgnoreError();
    faults_->Copy(base, &byte, 1, CopyDirection::kToHost).IgnoreError();
    faults_->PinHost(page_, kPage).IgnoreError();
    faults_->UnpinHost(page_).IgnoreError();
    const StreamSeq point = faults_->Record(StreamId{}).value_or(StreamSeq());
    faults_->Passed(StreamId{}, point).IgnoreError();
    faults_->Wait(StreamId{}, point).IgnoreError();
    faults_->Unmap(base, kPage).IgnoreError();
    faults_->Destroy(chunk).IgnoreError();
    faults_->Release(base, kPage).IgnoreError();
    faults_->GetMemoryInfo().IgnoreError();
    EXPECT_EQ(faults_->failures(), failures + 1) << DriverCallName(call);
  }
  for (const DriverCall call : kAllDriverCalls) {
    EXPECT_EQ(faults_->calls().count(call), kDriverCallCount) << DriverCallName(call);
  }
  EXPECT_EQ(faults_->calls().total(), kDriverCallCount * kDriverCallCount);
}

}  // namespace
}  // namespace thimble
