// DelayDriver: delays where asked, and a held stream cannot hang a test.
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "allocator/driver/host_driver.h"
#include "gtest/gtest.h"
#include "tests/drivers/delay_driver.h"

namespace thimble {
namespace {

constexpr StreamId kStream{1};

class DelayDriverTest : public testing::Test {
 protected:
  DelayDriverTest() : host_(HostDriver::Open({}).value()) {}
  std::unique_ptr<HostDriver> host_;
};

TEST_F(DelayDriverTest, DelaysBeforeAndAfterTheChosenCallsOnly) {
  DelayOptions options;
  options.calls = {DriverCall::kRecord};
  options.max_us = 0;
  DelayDriver driver(*host_, options);
  ASSERT_TRUE(driver.GetMemoryInfo().ok());
  EXPECT_EQ(driver.delays(), 0u);
  ASSERT_TRUE(driver.Record(kStream).ok());
  EXPECT_EQ(driver.delays(), 2u);
}

TEST_F(DelayDriverTest, SleepsAreReal) {
  DelayOptions options;
  options.max_us = 2'000;
  DelayDriver driver(*host_, options);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(driver.Record(kStream).ok());
  // 100 delays; half of them yield, the others sleep 1 ms on average.
  EXPECT_GT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(10));
}

TEST_F(DelayDriverTest, WaitOnAStreamNobodyReleasesGivesUp) {
  DelayOptions options;
  options.fuse_ms = 20;
  DelayDriver driver(*host_, options);
  driver.HoldStream(kStream);
  const StreamSeq point = driver.Record(kStream).value();
  EXPECT_EQ(driver.Wait(kStream, point).code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(driver.Passed(kStream, point).value()) << "still held";
  driver.ReleaseStream(kStream);
  EXPECT_TRUE(driver.Wait(kStream, point).ok());
}

TEST_F(DelayDriverTest, HoldingAndReleasingTwiceIsTheSameAsOnce) {
  DelayDriver driver(*host_);
  driver.ReleaseStream(kStream);
  driver.HoldStream(kStream);
  const StreamSeq held = driver.Record(kStream).value();
  driver.HoldStream(kStream);
  EXPECT_FALSE(driver.Passed(kStream, held).value()) << "the second hold must not let it pass";
  driver.ReleaseStream(kStream);
  driver.ReleaseStream(kStream);
  EXPECT_TRUE(driver.Passed(kStream, held).value());
}

TEST_F(DelayDriverTest, AStreamCanBeHeldAgain) {
  DelayDriver driver(*host_);
  for (int round = 0; round < 3; ++round) {
    const StreamSeq before = driver.Record(kStream).value();
    driver.HoldStream(kStream);
    const StreamSeq held = driver.Record(kStream).value();
    EXPECT_TRUE(driver.Passed(kStream, before).value());
    EXPECT_FALSE(driver.Passed(kStream, held).value());
    driver.ReleaseStream(kStream);
  }
}

TEST_F(DelayDriverTest, HoldAndReleaseRaceWithAllOtherCalls) {
  DelayOptions options;
  options.max_us = 1;
  DelayDriver driver(*host_, options);
  std::atomic<bool> stop{false};
  std::thread holder([&] {
    while (!stop) {
      driver.HoldStream(kStream);
      driver.ReleaseStream(kStream);
      std::this_thread::yield();
    }
  });
  for (int i = 0; i < 200; ++i) {
    const StreamSeq point = driver.Record(kStream).value();
    ASSERT_TRUE(driver.Wait(kStream, point).ok());
  }
  stop = true;
  holder.join();
}

}  // namespace
}  // namespace thimble
