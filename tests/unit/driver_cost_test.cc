// CostDriver: the published prices, honestly multiplied.
#include <memory>

#include "allocator/driver/host_driver.h"
#include "gtest/gtest.h"
#include "tests/drivers/cost_driver.h"

namespace thimble {
namespace {

constexpr Bytes kPage = 4 * kKiB;

class CostDriverTest : public testing::Test {
 protected:
  CostDriverTest() {
    HostOptions options;
    options.granularity = kPage;
    host_ = HostDriver::Open(options).value();
    costs_ = std::make_unique<CostDriver>(*host_);
    base_ = host_->Reserve(16 * kPage, kPage).value();  // past the counter
  }
  void MapSlots(int first, int count) {
    for (int i = first; i < first + count; ++i) {
      ASSERT_TRUE(costs_->Map(base_ + i * kPage, kPage, host_->Create(kPage).value()).ok());
    }
  }

  std::unique_ptr<HostDriver> host_;
  std::unique_ptr<CostDriver> costs_;
  Address base_;
};

TEST_F(CostDriverTest, CallsPayTheirPublishedPrice) {
  const Address base = costs_->Reserve(kPage, kPage).value();
  EXPECT_DOUBLE_EQ(costs_->virtual_us(), 19);
  const ChunkHandle chunk = costs_->Create(kPage).value();
  EXPECT_DOUBLE_EQ(costs_->virtual_us(), 19 + 193);
  ASSERT_TRUE(costs_->Map(base, kPage, chunk).ok());
  EXPECT_DOUBLE_EQ(costs_->virtual_us(), 19 + 193 + 1.5);
  ASSERT_TRUE(costs_->SetAccess(base, kPage).ok());
  EXPECT_DOUBLE_EQ(costs_->virtual_us(), 19 + 193 + 1.5 + 36);
  ASSERT_TRUE(costs_->Unmap(base, kPage).ok());
  EXPECT_DOUBLE_EQ(costs_->virtual_us(), 19 + 193 + 1.5 + 36 + 26);
  EXPECT_EQ(costs_->total_calls(), 5u);
}

TEST_F(CostDriverTest, SetAccessPaysForEveryMappingItCovers) {
  MapSlots(0, 8);
  ASSERT_TRUE(costs_->SetAccess(base_, 8 * kPage).ok());
  EXPECT_DOUBLE_EQ(costs_->virtual_us(DriverCall::kSetAccess), 8 * 36);
  ASSERT_TRUE(costs_->SetAccess(base_ + 2 * kPage, 3 * kPage).ok());
  EXPECT_DOUBLE_EQ(costs_->virtual_us(DriverCall::kSetAccess), (8 + 3) * 36);
  EXPECT_EQ(costs_->calls().count(DriverCall::kSetAccess), 2u);
}

TEST_F(CostDriverTest, OneLargeMappingIsOneMapping) {
  ASSERT_TRUE(costs_->Map(base_, 8 * kPage, host_->Create(8 * kPage).value()).ok());
  ASSERT_TRUE(costs_->SetAccess(base_, 8 * kPage).ok());
  EXPECT_DOUBLE_EQ(costs_->virtual_us(DriverCall::kSetAccess), 36);
}

TEST_F(CostDriverTest, UnmappedSlotsAreForgotten) {
  MapSlots(0, 3);
  ASSERT_TRUE(costs_->Unmap(base_ + kPage, kPage).ok());
  MapSlots(1, 1);
  EXPECT_FALSE(costs_->Unmap(base_, 2 * kPage).ok());
  EXPECT_FALSE(costs_->Unmap(base_ + 10 * kPage, kPage).ok());
  costs_->Reset();
  ASSERT_TRUE(costs_->SetAccess(base_, 3 * kPage).ok());
  EXPECT_DOUBLE_EQ(costs_->virtual_us(), 3 * 36) << "neither lost nor invented by the failures";
}

TEST_F(CostDriverTest, FailedCallsAreCountedAndPay) {
  EXPECT_FALSE(costs_->Create(1).ok());
  EXPECT_FALSE(costs_->SetAccess(base_, kPage).ok());
  EXPECT_DOUBLE_EQ(costs_->virtual_us(), 193 + 36);
  EXPECT_EQ(costs_->total_calls(), 2u);
}

TEST_F(CostDriverTest, CopiesPayForTheCallAndForTheBytes) {
  MapSlots(0, 1);
  ASSERT_TRUE(costs_->SetAccess(base_, kPage).ok());
  costs_->Reset();
  char bytes[kPage];
  ASSERT_TRUE(costs_->Copy(base_, bytes, kPage, CopyDirection::kToHost).ok());
  EXPECT_DOUBLE_EQ(costs_->virtual_us(), 47 + 4096 / 13200.0);
  costs_->Reset();
  ASSERT_TRUE(costs_->Copy(base_, bytes, kPage, CopyDirection::kToDevice).ok());
  EXPECT_DOUBLE_EQ(costs_->virtual_us(), 9.7 + 4096 / 12200.0);
}

TEST_F(CostDriverTest, UnpricedCallsAreCounted) {
  ASSERT_TRUE(costs_->Release(base_, 16 * kPage).ok());
  ASSERT_TRUE(costs_->Destroy(host_->Create(kPage).value()).ok());
  ASSERT_TRUE(costs_->Record(StreamId{}).ok());
  ASSERT_TRUE(costs_->Passed(StreamId{}, StreamSeq(1)).ok());
  ASSERT_TRUE(costs_->Wait(StreamId{}, StreamSeq(1)).ok());
  ASSERT_TRUE(costs_->GetMemoryInfo().ok());
  EXPECT_EQ(costs_->total_calls(), 6u);
  EXPECT_DOUBLE_EQ(costs_->virtual_us(), 0);
}

TEST_F(CostDriverTest, OtherPricesCanBeSet) {
  DriverPrices second_gpu;
  second_gpu.map_us = 1.1;
  CostDriver costs(*host_, second_gpu);
  ASSERT_TRUE(costs.Map(base_, kPage, host_->Create(kPage).value()).ok());
  EXPECT_DOUBLE_EQ(costs.virtual_us(DriverCall::kMap), 1.1);
}

}  // namespace
}  // namespace thimble
