// P9 for real: fills the process with memory areas, first up to the host driver's own limit, then
// up to the kernel's, and goes on working. Not for sanitizers, which need areas of their own.
#include <memory>
#include <vector>

#include "allocator/driver/host_driver.h"
#include "gtest/gtest.h"
#include "tests/conformance/subject.h"

namespace thimble {
namespace {

constexpr Bytes kPage = 4 * kKiB;
constexpr Bytes kPages = 400'000;  // of addresses: more than any cap of the kernel needs

class HostCap : public testing::Test {
 protected:
  void Open(std::uint64_t max_areas) {
    HostOptions options;
    options.granularity = kPage;
    options.total_bytes = kGiB;
    options.max_areas = max_areas;
    driver_ = HostDriver::Open(options).value();
    base_ = driver_->Reserve(kPages * kPage, kPage).value();
    chunk_ = driver_->Create(kPage).value();
  }

  // Each mapping with a gap behind it: two areas. Returns what stopped it.
  absl::Status FillWithGaps() {
    for (Address at = base_; at < base_ + kPages * kPage; at += 2 * kPage) {
      absl::Status status = driver_->Map(at, kPage, chunk_);
      if (!status.ok()) return status;
      mapped_.push_back(at);
    }
    return absl::OkStatus();
  }

  void UnmapAll() {
    for (const Address at : mapped_) ASSERT_TRUE(Succeeds(driver_->Unmap(at, kPage)));
    mapped_.clear();
  }

  std::unique_ptr<HostDriver> driver_;
  Address base_;
  ChunkHandle chunk_{};
  std::vector<Address> mapped_;
};

TEST_F(HostCap, TheHeadroomServesUnmapInTheMiddleOfARun) {
  Open(/*max_areas=*/0);
  constexpr int kRun = 12'000;
  const Address run = driver_->Reserve(kRun * kPage, kPage).value();
  for (int i = 0; i < kRun; ++i) {
    ASSERT_TRUE(Succeeds(driver_->Map(run + i * kPage, kPage, driver_->Create(kPage).value())));
  }
  EXPECT_TRUE(IsExhausted(FillWithGaps()));
  EXPECT_GT(mapped_.size(), 20'000u);
  // Every second one: each needs two areas more, at a time when Map gets none.
  for (int i = 1; i < kRun; i += 2) {
    ASSERT_TRUE(Succeeds(driver_->Unmap(run + i * kPage, kPage))) << i;
  }
  UnmapAll();
  EXPECT_TRUE(Succeeds(driver_->Map(base_, kPage, chunk_)));
  driver_->CheckInvariants();
}

TEST_F(HostCap, TheKernelsOwnRefusalIsCleanAndEverythingRecovers) {
  Open(/*max_areas=*/1'000'000);
  EXPECT_TRUE(IsExhausted(FillWithGaps()));
  const std::size_t at_first = mapped_.size();
  EXPECT_GT(at_first, 30'000u);
  // At the cap: what takes an area is refused and leaves no trace, what gives one works.
  const Address next = mapped_.back() + 2 * kPage;
  EXPECT_TRUE(IsExhausted(driver_->Map(next, kPage, chunk_)));
  EXPECT_FALSE(driver_->Translate(next).ok());
  driver_->CheckInvariants();
  UnmapAll();
  EXPECT_TRUE(IsExhausted(FillWithGaps()));
  EXPECT_EQ(mapped_.size(), at_first) << "areas were lost";
  UnmapAll();
}

}  // namespace
}  // namespace thimble
