// Peaks of spans of time against a list of all values.
#include "allocator/arena/peaks.h"

#include <random>
#include <thread>

#include "tests/unit/arena_fixture.h"

namespace thimble {
namespace {

TEST(Peaks, AMarkKnowsTheLargestValueSinceItWasSet) {
  std::mt19937 random(1);
  Peaks peaks;
  std::vector<Bytes> values;
  std::map<PeakMark, std::size_t> begins;  // of what is set
  std::size_t reset = 0;
  Bytes now = 0;
  PeakMark next = 1;
  const auto largest_since = [&](std::size_t begin) {
    return *std::max_element(values.begin() + static_cast<std::ptrdiff_t>(begin), values.end());
  };
  for (int i = 0; i < 2000; ++i) {
    now = random() % 1000;
    values.push_back(now);
    peaks.Raise(now);
    const auto choice = random() % 10;
    if (choice == 0) {
      peaks.Set(next, now);
      begins[next++] = values.size() - 1;
    } else if (choice == 1 && begins.size() > 5) {
      auto some = begins.begin();
      std::advance(some, static_cast<std::ptrdiff_t>(random() % begins.size()));
      peaks.Remove(some->first);
      EXPECT_FALSE(peaks.Of(some->first).has_value());
      begins.erase(some);
    } else if (choice == 2) {
      peaks.ResetOverall(now);
      reset = values.size() - 1;
    }
    EXPECT_EQ(peaks.overall(), largest_since(reset));
    for (const auto& [mark, begin] : begins) ASSERT_EQ(peaks.Of(mark), largest_since(begin));
  }
}

class MarkedPeaks : public ArenaTest {};

TEST_F(MarkedPeaks, SpansDoNotDisturbEachOtherNorTheWhole) {
  Make(kMiB);
  Free(Allocate(20 * kChunk));
  const PeakMark outer = arena_->SetPeakMark();
  Free(Allocate(8 * kChunk));
  const PeakMark inner = arena_->SetPeakMark();
  const Address kept = Allocate(4 * kChunk);
  EXPECT_EQ(arena_->PeaksSince(inner)->in_use, 4 * kChunk);
  EXPECT_EQ(arena_->PeaksSince(inner)->reserved, 20 * kChunk);
  EXPECT_EQ(arena_->PeaksSince(outer)->in_use, 8 * kChunk);
  EXPECT_TRUE(arena_->RemovePeakMark(outer).ok()) << "the outer one may end first";
  EXPECT_EQ(arena_->PeaksSince(inner)->in_use, 4 * kChunk);
  EXPECT_EQ(stats().peak_in_use, 20 * kChunk);
  arena_->ResetPeaks();
  EXPECT_EQ(stats().peak_in_use, 4 * kChunk);
  Free(kept);
  EXPECT_EQ(arena_->PeaksSince(inner)->in_use, 4 * kChunk);
  EXPECT_TRUE(arena_->RemovePeakMark(inner).ok());
  EXPECT_FALSE(arena_->RemovePeakMark(inner).ok());
  EXPECT_FALSE(arena_->PeaksSince(inner).ok());
}

TEST_F(MarkedPeaks, ThreadsMayMarkWhileOthersAllocate) {
  Make(4 * kMiB);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      const StreamId stream{t};
      for (Bytes i = 0; i < 500; ++i) {
        const PeakMark mark = arena_->SetPeakMark();
        const Bytes bytes = (1 + i % 8) * kChunk;
        const auto block = arena_->Allocate({bytes, 0, stream, 0});
        ASSERT_TRUE(block.ok()) << block.status();
        EXPECT_TRUE(arena_->Free(*block, stream).ok());
        const auto peaks = arena_->PeaksSince(mark);
        EXPECT_GE(peaks->in_use, bytes);
        EXPECT_LE(peaks->in_use, 4 * 8 * kChunk);
        EXPECT_LE(peaks->in_use, stats().peak_in_use);
        EXPECT_TRUE(arena_->RemovePeakMark(mark).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace thimble
