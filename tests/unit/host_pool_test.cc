// HostPool: its memory belongs to this process only, and never exceeds its limit.
#include "allocator/swap/host_pool.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "allocator/driver/host_driver.h"
#include "gtest/gtest.h"
#include "tests/drivers/fault_driver.h"

namespace thimble {
namespace {

class HostPoolTest : public testing::Test {
 protected:
  const std::unique_ptr<HostDriver> driver_ = HostDriver::Open(HostOptions()).value();
};

TEST_F(HostPoolTest, HandsOutUpToItsLimit) {
  const auto pool = HostPool::Create(64 * kKiB, driver_.get()).value();
  void* const first = pool->Take(48 * kKiB);
  ASSERT_NE(first, nullptr);
  std::memset(first, 1, 48 * kKiB);
  EXPECT_EQ(pool->Take(32 * kKiB), nullptr);
  void* const second = pool->Take(16 * kKiB);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(pool->taken_bytes(), 64 * kKiB);
  pool->Give(first, 48 * kKiB);
  EXPECT_NE(pool->Take(32 * kKiB), nullptr);
}

TEST_F(HostPoolTest, RequestsBeyondItsRoomAreRefused) {
  EXPECT_FALSE(HostPool::Create(Bytes{1} << 62, driver_.get()).ok());
}

TEST_F(HostPoolTest, AMachineThatIsShortOfMemoryIsLeftAlone) {
  Bytes available = HostPool::kLeftToOthers + HostPool::kSegment;
  const auto pool =
      HostPool::Create(4 * HostPool::kSegment, driver_.get(), [&] { return available; }).value();
  void* const first = pool->Take(HostPool::kSegment);
  ASSERT_NE(first, nullptr);
  available -= HostPool::kSegment;
  EXPECT_EQ(pool->Take(kMiB), nullptr);
  EXPECT_EQ(pool->taken_bytes(), HostPool::kSegment);
  pool->Give(first, HostPool::kSegment);
  EXPECT_EQ(pool->Take(kMiB), first) << "what was taken once is kept";
  available += kGiB;
  EXPECT_NE(pool->Take(2 * HostPool::kSegment), nullptr);
}

TEST_F(HostPoolTest, RangesArePinnedIfTheDriverCan) {
  FaultDriver driver(*driver_);
  for (const bool refused : {false, true}) {
    if (refused) driver.FailAll(DriverCall::kPinHost);
    const auto pool = HostPool::Create(3 * HostPool::kSegment, &driver).value();
    void* const host = pool->Take(2 * HostPool::kSegment);
    ASSERT_NE(host, nullptr);
    EXPECT_EQ(driver_->PinHost(host, 4 * kKiB).ok(), refused);
    EXPECT_EQ(driver_->UnpinHost(host).ok(), true);
    EXPECT_EQ(driver_->UnpinHost(static_cast<char*>(host) + HostPool::kSegment).ok(), !refused);
  }
  EXPECT_EQ(driver.calls().count(DriverCall::kUnpinHost), 2u) << "when a pool goes";
}

TEST_F(HostPoolTest, AChildHasNone) {
  const auto pool = HostPool::Create(64 * kKiB, driver_.get()).value();
  ASSERT_NE(pool->Take(4 * kKiB), nullptr);
  const pid_t child = fork();
  if (child == 0) _exit(pool->IsOurs() || pool->Take(4 * kKiB) != nullptr ? 1 : 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_NE(pool->Take(4 * kKiB), nullptr);
}

}  // namespace
}  // namespace thimble
