// Frontiers of streams, and many threads at once. Runs on every driver; tests that need pending
// work run on those that can hold a stream back.
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/conformance/subject.h"

namespace thimble {
namespace {

class DriverStreams : public DriverConformance {
 protected:
  const StreamId stream_ = subject_->Stream(1);
  const StreamId other_ = subject_->Stream(2);
};
INSTANTIATE_TEST_SUITE_P(All, DriverStreams, testing::ValuesIn(AllSubjects()), SubjectName);

TEST_P(DriverStreams, PointsAreCountedFromOnePerStream) {
  for (StreamSeq expected(1); expected <= StreamSeq(5); ++expected) {
    EXPECT_EQ(driver_.Record(stream_).value(), expected);
  }
  EXPECT_EQ(driver_.Record(other_).value(), StreamSeq(1));
  EXPECT_EQ(driver_.Record(StreamId{}).value(), StreamSeq(1))
      << "the default stream is a stream too";
}

TEST_P(DriverStreams, PointZeroIsAlwaysPassed) {
  EXPECT_TRUE(driver_.Passed(stream_, StreamSeq(0)).value());
  EXPECT_TRUE(Succeeds(driver_.Wait(stream_, StreamSeq(0))));
}

TEST_P(DriverStreams, PointOfTheFutureIsRefused) {
  EXPECT_TRUE(IsRefused(driver_.Passed(stream_, StreamSeq(1))));
  EXPECT_TRUE(IsRefused(driver_.Wait(stream_, StreamSeq(1))));
  ASSERT_TRUE(Succeeds(driver_.Record(stream_)));
  EXPECT_TRUE(Succeeds(driver_.Wait(stream_, StreamSeq(1))));
  EXPECT_TRUE(IsRefused(driver_.Passed(stream_, StreamSeq(2))));
  EXPECT_TRUE(IsRefused(driver_.Wait(stream_, StreamSeq(2))));
  EXPECT_TRUE(IsRefused(driver_.Passed(other_, StreamSeq(1))));
}

TEST_P(DriverStreams, IdleStreamHasPassedEveryPoint) {
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Succeeds(driver_.Record(stream_)));
  for (const StreamSeq point : {StreamSeq(100), StreamSeq(1), StreamSeq(50), StreamSeq(100)}) {
    EXPECT_TRUE(driver_.Passed(stream_, point).value()) << point.value();
    EXPECT_TRUE(Succeeds(driver_.Wait(stream_, point))) << point.value();
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
      const StreamId stream = subject_->Stream(id);
      StreamSeq last;
      for (int round = 0; round < kRounds; ++round) {
        const Address base = driver_.Reserve(kSlots * granule_, granule_).value();
        for (Bytes slot = 0; slot < kSlots; ++slot) Back(base + slot * granule_);
        for (Bytes slot = 0; slot < kSlots; ++slot) Poke(base + slot * granule_, id * 16 + slot);
        const StreamSeq point = driver_.Record(stream).value();
        wrong += point <= last;
        last = point;
        wrong += !driver_.Wait(stream, point).ok();
        for (Bytes slot = 0; slot < kSlots; ++slot) {
          wrong += Peek(base + slot * granule_) != id * 16 + slot;
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

// E1: however the threads interleave, no two of them get the same number for a point.
TEST_P(DriverStreams, ThreadsThatShareAStreamGetDistinctPoints) {
  constexpr int kThreads = 4;
  constexpr std::uint64_t kRounds = 200;
  std::atomic<std::uint64_t> sum{0};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int id = 0; id < kThreads; ++id) {
    threads.emplace_back([this, &sum, &wrong] {
      for (std::uint64_t round = 0; round < kRounds; ++round) {
        const StreamSeq point = driver_.Record(stream_).value();
        sum += point.value();
        wrong += !driver_.Wait(stream_, point).ok() || !driver_.Passed(stream_, point).value();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::uint64_t last = kThreads * kRounds;
  EXPECT_EQ(sum, last * (last + 1) / 2);
  EXPECT_EQ(wrong, 0);
}

class HeldStreams : public DriverStreams {};
INSTANTIATE_TEST_SUITE_P(Holding, HeldStreams, testing::ValuesIn(HoldingSubjects()), SubjectName);

TEST_P(HeldStreams, PendingPointIsNotPassedUntilReleased) {
  const StreamSeq before = driver_.Record(stream_).value();
  subject_->HoldStream(stream_);
  const StreamSeq held = driver_.Record(stream_).value();
  EXPECT_TRUE(driver_.Passed(stream_, before).value());
  EXPECT_FALSE(driver_.Passed(stream_, held).value());
  const StreamSeq other = driver_.Record(other_).value();
  EXPECT_TRUE(driver_.Passed(other_, other).value()) << "another stream is not held";
  subject_->ReleaseStream(stream_);
  EXPECT_TRUE(driver_.Passed(stream_, held).value());
}

TEST_P(HeldStreams, APassedPointStaysPassed) {
  const StreamSeq first = driver_.Record(stream_).value();
  ASSERT_TRUE(driver_.Passed(stream_, first).value());
  subject_->HoldStream(stream_);
  for (int i = 0; i < 20; ++i) {
    const StreamSeq held = driver_.Record(stream_).value();
    EXPECT_FALSE(driver_.Passed(stream_, held).value());
    EXPECT_TRUE(driver_.Passed(stream_, first).value());
  }
  subject_->ReleaseStream(stream_);
}

// E2: a point returns its event once, not twice, after a wait.
TEST_P(HeldStreams, StreamsDoNotDisturbEachOthersPoints) {
  ASSERT_TRUE(Succeeds(driver_.Wait(stream_, driver_.Record(stream_).value())));
  subject_->HoldStream(stream_);
  const StreamSeq held = driver_.Record(stream_).value();
  const StreamSeq other = driver_.Record(other_).value();
  EXPECT_FALSE(driver_.Passed(stream_, held).value());
  EXPECT_TRUE(driver_.Passed(other_, other).value());
  subject_->ReleaseStream(stream_);
}

TEST_P(HeldStreams, WaitReturnsWhenTheStreamIsReleased) {
  subject_->HoldStream(stream_);
  const StreamSeq held = driver_.Record(stream_).value();
  std::atomic<bool> released{false};
  std::vector<std::thread> waiters;
  for (int i = 0; i < 3; ++i) {
    waiters.emplace_back([this, held, &released] {
      EXPECT_TRUE(Succeeds(driver_.Wait(stream_, held)));
      EXPECT_TRUE(released);
    });
  }
  // Points come and go on another stream meanwhile: an event that a thread waits for is not reused
  // (E2).
  for (int i = 0; i < 50; ++i) {
    const StreamSeq point = driver_.Record(other_).value();
    EXPECT_TRUE(driver_.Passed(other_, point).value());
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  released = true;
  subject_->ReleaseStream(stream_);
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_TRUE(driver_.Passed(stream_, held).value());
}

}  // namespace
}  // namespace thimble
