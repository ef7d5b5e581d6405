// Frontiers of streams, and many threads at once. Runs on every driver; what needs work that is
// still pending runs on those that can hold a stream back.
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/conformance/subject.h"

namespace thimble {
namespace {

constexpr StreamId kStream{1};
constexpr StreamId kOther{2};

class DriverStreams : public DriverConformance {};
INSTANTIATE_TEST_SUITE_P(All, DriverStreams, testing::ValuesIn(AllSubjects()), SubjectName);

TEST_P(DriverStreams, PointsAreCountedFromOnePerStream) {
  for (StreamSeq expected = 1; expected <= 5; ++expected) {
    EXPECT_EQ(driver_.Record(kStream).value(), expected);
  }
  EXPECT_EQ(driver_.Record(kOther).value(), 1u);
  EXPECT_EQ(driver_.Record(StreamId{}).value(), 1u) << "the default stream is a stream too";
}

TEST_P(DriverStreams, PointZeroIsAlwaysPassed) {
  EXPECT_TRUE(driver_.Passed(kStream, 0).value());
  EXPECT_TRUE(Succeeds(driver_.Wait(kStream, 0)));
}

TEST_P(DriverStreams, PointOfTheFutureIsRefused) {
  EXPECT_TRUE(IsRefused(driver_.Passed(kStream, 1)));
  EXPECT_TRUE(IsRefused(driver_.Wait(kStream, 1)));
  ASSERT_TRUE(Succeeds(driver_.Record(kStream)));
  EXPECT_TRUE(Succeeds(driver_.Wait(kStream, 1)));
  EXPECT_TRUE(IsRefused(driver_.Passed(kStream, 2)));
  EXPECT_TRUE(IsRefused(driver_.Wait(kStream, 2)));
  EXPECT_TRUE(IsRefused(driver_.Passed(kOther, 1)));
}

TEST_P(DriverStreams, IdleStreamHasPassedEveryPoint) {
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Succeeds(driver_.Record(kStream)));
  for (const StreamSeq point : {100, 1, 50, 100}) {
    EXPECT_TRUE(driver_.Passed(kStream, point).value()) << point;
    EXPECT_TRUE(Succeeds(driver_.Wait(kStream, point))) << point;
  }
}

// Each thread has addresses of its own but all share the driver, so every interleaving must work.
TEST_P(DriverStreams, ThreadsDoNotDisturbEachOther) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 50;
  constexpr Bytes kSlots = 8;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int id = 0; id < kThreads; ++id) {
    threads.emplace_back([this, id, &wrong] {
      const StreamId stream{static_cast<std::uint64_t>(id)};
      StreamSeq last = 0;
      for (int round = 0; round < kRounds; ++round) {
        const Address base = driver_.Reserve(kSlots * granule_, granule_).value();
        for (Bytes slot = 0; slot < kSlots; ++slot) Back(base + slot * granule_);
        for (Bytes slot = 0; slot < kSlots; ++slot) At(base + slot * granule_) = id * 16 + slot;
        const StreamSeq point = driver_.Record(stream).value();
        wrong += point <= last;
        last = point;
        wrong += !driver_.Wait(stream, point).ok();
        for (Bytes slot = 0; slot < kSlots; ++slot) {
          wrong += At(base + slot * granule_) != id * 16 + slot;
          wrong += !Unmap(base + slot * granule_).ok();
        }
        wrong += !driver_.Release(base, kSlots * granule_).ok();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(FreeBytes(), kSubjectGranules * granule_);
}

// E1: however the threads interleave, a point that one of them recorded is a number no other got.
TEST_P(DriverStreams, ThreadsThatShareAStreamGetDistinctPoints) {
  constexpr int kThreads = 4;
  constexpr StreamSeq kRounds = 200;
  std::atomic<StreamSeq> sum{0};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int id = 0; id < kThreads; ++id) {
    threads.emplace_back([this, &sum, &wrong] {
      for (StreamSeq round = 0; round < kRounds; ++round) {
        const StreamSeq point = driver_.Record(kStream).value();
        sum += point;
        wrong += !driver_.Wait(kStream, point).ok() || !driver_.Passed(kStream, point).value();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const StreamSeq last = kThreads * kRounds;
  EXPECT_EQ(sum, last * (last + 1) / 2);
  EXPECT_EQ(wrong, 0);
}

class HeldStreams : public DriverConformance {};
INSTANTIATE_TEST_SUITE_P(Holding, HeldStreams, testing::ValuesIn(HoldingSubjects()), SubjectName);

TEST_P(HeldStreams, PendingPointIsNotPassedUntilReleased) {
  const StreamSeq before = driver_.Record(kStream).value();
  subject_->HoldStream(kStream);
  const StreamSeq held = driver_.Record(kStream).value();
  EXPECT_TRUE(driver_.Passed(kStream, before).value());
  EXPECT_FALSE(driver_.Passed(kStream, held).value());
  const StreamSeq other = driver_.Record(kOther).value();
  EXPECT_TRUE(driver_.Passed(kOther, other).value()) << "another stream is not held";
  subject_->ReleaseStream(kStream);
  EXPECT_TRUE(driver_.Passed(kStream, held).value());
}

TEST_P(HeldStreams, PassedIsForEver) {
  const StreamSeq first = driver_.Record(kStream).value();
  ASSERT_TRUE(driver_.Passed(kStream, first).value());
  subject_->HoldStream(kStream);
  for (int i = 0; i < 20; ++i) {
    const StreamSeq held = driver_.Record(kStream).value();
    EXPECT_FALSE(driver_.Passed(kStream, held).value());
    EXPECT_TRUE(driver_.Passed(kStream, first).value());
  }
  subject_->ReleaseStream(kStream);
}

// E2: a point that was waited for gives its event back once, not twice.
TEST_P(HeldStreams, StreamsDoNotDisturbEachOthersPoints) {
  ASSERT_TRUE(Succeeds(driver_.Wait(kStream, driver_.Record(kStream).value())));
  subject_->HoldStream(kStream);
  const StreamSeq held = driver_.Record(kStream).value();
  const StreamSeq other = driver_.Record(kOther).value();
  EXPECT_FALSE(driver_.Passed(kStream, held).value());
  EXPECT_TRUE(driver_.Passed(kOther, other).value());
  subject_->ReleaseStream(kStream);
}

TEST_P(HeldStreams, WaitReturnsWhenTheStreamIsReleased) {
  subject_->HoldStream(kStream);
  const StreamSeq held = driver_.Record(kStream).value();
  std::atomic<bool> released{false};
  std::vector<std::thread> waiters;
  for (int i = 0; i < 3; ++i) {
    waiters.emplace_back([this, held, &released] {
      EXPECT_TRUE(Succeeds(driver_.Wait(kStream, held)));
      EXPECT_TRUE(released);
    });
  }
  // Points come and go on another stream meanwhile: an event somebody waits for is not reused (E2).
  for (int i = 0; i < 50; ++i) {
    const StreamSeq point = driver_.Record(kOther).value();
    EXPECT_TRUE(driver_.Passed(kOther, point).value());
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  released = true;
  subject_->ReleaseStream(kStream);
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_TRUE(driver_.Passed(kStream, held).value());
}

}  // namespace
}  // namespace thimble
