// Several threads free the same block at the same time: exactly one succeeds.
#include <atomic>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/race/crew.h"

namespace thimble {
namespace {

constexpr int kThreads = 3;

// All threads meet here, again and again.
class Meeting {
 public:
  void Arrive() {
    const std::uint64_t mine = arrived_.fetch_add(1) / kThreads;
    while (arrived_.load() < (mine + 1) * kThreads) std::this_thread::yield();
  }

 private:
  std::atomic<std::uint64_t> arrived_{0};
};

struct Case {
  const char* name;
  Bytes bytes;
  std::uint64_t streams;  // with several, magazines of one stream must pass the block on
  int rounds;
};

class DoubleFree : public testing::TestWithParam<Case> {};

TEST_P(DoubleFree, SucceedsExactlyOnce) {
  const Case& param = GetParam();
  const auto device = OpenDevice();
  const auto arena = MakeArena(device.get());
  // The first blocks fill the magazine, so that later ones find it full too.
  std::vector<Address> blocks(100);
  Meeting meeting;
  std::atomic<int> freed{0};
  int wrong_rounds = 0;
  std::uint64_t rounds = 0;
  const auto free_all = [&](int thread) {
    for (int round = 0; round < param.rounds; ++round) {
      if (thread == 0) {
        freed = 0;
        for (Address& block : blocks) {
          block = arena->Allocate({param.bytes, 0, StreamId{}, 0}).value();
          *static_cast<volatile int*>(ToPointer(block)) = round;
        }
      }
      meeting.Arrive();
      for (const Address block : blocks) {
        const StreamId stream{static_cast<std::uint64_t>(thread) % param.streams};
        if (arena->Free(block, stream).ok()) freed.fetch_add(1);
      }
      meeting.Arrive();
      if (thread == 0) {
        ++rounds;
        if (freed != static_cast<int>(blocks.size())) ++wrong_rounds;
        arena->CheckInvariants();
      }
    }
  };
  std::vector<std::thread> others;
  for (int thread = 1; thread < kThreads; ++thread) others.emplace_back(free_all, thread);
  free_all(0);
  for (std::thread& other : others) other.join();
  EXPECT_EQ(rounds, static_cast<std::uint64_t>(param.rounds));
  EXPECT_EQ(wrong_rounds, 0);
  const ArenaStats stats = arena->GetStats();
  EXPECT_EQ(stats.live_blocks, 0u);
  EXPECT_EQ(stats.in_use, 0u);
  EXPECT_EQ(stats.allocations, rounds * blocks.size());
}

INSTANTIATE_TEST_SUITE_P(Sizes, DoubleFree,
                         testing::Values(Case{"Magazine", 256, 1, 300},
                                         Case{"MagazineOfManyStreams", 1024, 3, 300},
                                         Case{"LargestInMagazine", 4096, 2, 300},
                                         Case{"Heap", 5000, 1, 300},
                                         Case{"HeapOfManyStreams", 70000, 3, 300}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace thimble
