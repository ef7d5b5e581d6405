// Many threads, streams and devices at once: no block is handed out twice, and all come back.
#include <algorithm>
#include <atomic>
#include <map>
#include <random>
#include <thread>

#include "tests/xla_plugin/front_fixture.h"

namespace thimble::xla {

const char* const kFrontConf = "";

namespace {

constexpr int kThreads = 8;
constexpr int kRounds = 400;

struct Held {
  CUdeviceptr pointer;
  std::size_t bytes;
};

// Tracks who holds which addresses; an overlap means that a block was handed out twice.
class Ledger {
 public:
  void Add(const Held& block) {
    const std::lock_guard lock(mutex_);
    const auto next = ends_.upper_bound(block.pointer);
    EXPECT_TRUE(next == ends_.end() || next->second >= block.pointer + block.bytes) << "overlap";
    ends_.emplace(block.pointer + block.bytes, block.pointer);
  }
  void Remove(const Held& block) {
    const std::lock_guard lock(mutex_);
    ends_.erase(block.pointer + block.bytes);
  }

 private:
  std::mutex mutex_;
  std::map<CUdeviceptr, CUdeviceptr> ends_;  // end to begin
};

class FrontRace : public FrontTest {
 protected:
  // A query about any byte returns the block with its requested size.
  static void ExpectWhole(const Held& block, std::size_t inside) {
    CUdeviceptr base = 0;
    std::size_t bytes = 0;
    EXPECT_EQ(cuMemGetAddressRange_v2(&base, &bytes, block.pointer + inside % block.bytes),
              kSuccess);
    EXPECT_EQ(base, block.pointer);
    EXPECT_EQ(bytes, block.bytes);
  }

  void Work(int seed, CUstream stream, int device, Ledger* ledger) {
    UseDevice(device);
    std::mt19937 random(static_cast<unsigned>(seed));
    std::vector<Held> held;
    for (int round = 0; round < kRounds; ++round) {
      if (held.size() < 8 && random() % 2 == 0) {
        Held block = {0, 1 + random() % (random() % 4 == 0 ? 8 * kMiB : 8192)};
        const bool plain = random() % 16 == 0;
        block.pointer = plain ? AllocatePlain(block.bytes) : Allocate(block.bytes, stream, device);
        ledger->Add(block);
        held.push_back(block);
        ExpectWhole(held[random() % held.size()], random());
      } else if (!held.empty()) {
        const Held block = held[random() % held.size()];
        held.erase(std::find_if(held.begin(), held.end(),
                                [&](const Held& one) { return one.pointer == block.pointer; }));
        ledger->Remove(block);
        if (random() % 32 == 0) {
          EXPECT_EQ(cuMemFree_v2(block.pointer), kSuccess);
        } else {
          Free(block.pointer, stream);
        }
      }
    }
    for (const Held& block : held) {
      ledger->Remove(block);
      Free(block.pointer, stream);
    }
  }
};

TEST_F(FrontRace, NoBlockIsHandedOutTwice) {
  std::vector<CUstream> streams;
  for (int thread = 0; thread < kThreads; ++thread) {
    UseDevice(thread % 2);
    streams.push_back(NewStream());
  }
  Ledger ledger;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] { Work(thread, streams[thread], thread % 2, &ledger); });
  }
  for (std::thread& thread : threads) thread.join();
  UseDevice(0);
}

TEST_F(FrontRace, OfSeveralThreadsThatFreeOneGetsTheBlock) {
  constexpr int kBlocks = 500;
  const CUstream stream = NewStream();
  std::vector<CUdeviceptr> blocks;
  for (std::size_t i = 0; i < kBlocks; ++i) blocks.push_back(Allocate(1 + 97 * i, stream));
  std::atomic<int> freed{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      UseDevice(0);
      for (const CUdeviceptr block : blocks) {
        const CUresult result = cuMemFreeAsync(block, stream);
        EXPECT_TRUE(result == kSuccess || result == kInvalidValue) << result;
        if (result == kSuccess) ++freed;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(freed, kBlocks);
}

// What is remembered of streams is forgotten on all threads at once.
TEST_F(FrontRace, StreamsComeAndGoWhileOthersAreUsed) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      const int device = thread % 2;
      UseDevice(device);
      for (int round = 0; round < 50; ++round) {
        CUstream stream = nullptr;
        EXPECT_EQ(Real().cuStreamCreate(&stream, kNonBlocking), kSuccess);
        for (int again = 0; again < 3; ++again) {
          CUdeviceptr pointer = 0;
          EXPECT_EQ(cuMemAllocAsync(&pointer, 5000, stream), kSuccess);
          Free(pointer, stream);
        }
        EXPECT_EQ(cuStreamDestroy_v2(stream), kSuccess);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace thimble::xla
