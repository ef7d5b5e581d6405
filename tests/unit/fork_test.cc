// A child has its own copy of the bytes at the fork: neither process sees later writes of the
// other.
#include "allocator/base/fork.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "allocator/driver/host_driver.h"
#include "gtest/gtest.h"

namespace thimble {
namespace {

constexpr Bytes kChunk = 64 * kKiB;

// Runs `body` in a child; true if it returned true there.
class Child {
 public:
  explicit Child(const std::function<bool()>& body) : process_(fork()) {
    if (process_ == 0) _exit(body() ? 0 : 1);
  }
  ~Child() {
    if (process_ != 0) Ended();
  }
  bool Ended() {
    int status = -1;
    waitpid(std::exchange(process_, 0), &status, 0);
    return status == 0;
  }

 private:
  pid_t process_;
};

// Lets one process wait for the other.
class Signal {
 public:
  Signal() { EXPECT_EQ(pipe(ends_), 0); }
  ~Signal() {
    close(ends_[0]);
    close(ends_[1]);
  }
  void Give() { EXPECT_EQ(write(ends_[1], "x", 1), 1); }
  void Await() {
    char byte = 0;
    EXPECT_EQ(read(ends_[0], &byte, 1), 1);
  }

 private:
  int ends_[2];
};

bool AllAre(const unsigned char* bytes, int value, Bytes count = kChunk) {
  for (Bytes i = 0; i < count; ++i) {
    if (bytes[i] != value) return false;
  }
  return true;
}

class ForkTest : public testing::Test {
 protected:
  ForkTest()
      : driver_(std::move(HostDriver::Open({.total_bytes = kMiB, .granularity = kChunk})).value()) {
    base_ = driver_->Reserve(kMiB, kChunk).value();
  }
  ~ForkTest() override { driver_->CheckInvariants(); }

  unsigned char* At(int slot) {
    return static_cast<unsigned char*>(ToPointer(base_ + slot * kChunk));
  }
  void Map(int slot, ChunkHandle chunk) {
    ASSERT_TRUE(driver_->Map(base_ + slot * kChunk, kChunk, chunk).ok());
    ASSERT_TRUE(driver_->SetAccess(base_ + slot * kChunk, kChunk).ok());
  }
  ChunkHandle Make(int slot, int value) {
    const ChunkHandle chunk = driver_->Create(kChunk).value();
    Map(slot, chunk);
    std::memset(At(slot), value, kChunk);
    return chunk;
  }
  void Drop(int slot, ChunkHandle chunk) {
    ASSERT_TRUE(driver_->Unmap(base_ + slot * kChunk, kChunk).ok());
    ASSERT_TRUE(driver_->Destroy(chunk).ok());
  }
  Bytes Free() { return driver_->GetMemoryInfo().value().free_bytes; }

  std::unique_ptr<HostDriver> driver_;
  Address base_;
};

TEST_F(ForkTest, NeitherSideSeesWhatTheOtherWrites) {
  Make(0, 1);
  Make(1, 2);
  Signal parent_wrote;
  Signal child_wrote;
  Child child([&] {
    parent_wrote.Await();
    const bool unchanged = AllAre(At(0), 1) && AllAre(At(1), 2);
    std::memset(At(0), 7, kChunk);
    child_wrote.Give();
    return unchanged && AllAre(At(0), 7);
  });
  std::memset(At(1), 9, kChunk);
  parent_wrote.Give();
  child_wrote.Await();
  EXPECT_TRUE(AllAre(At(0), 1));
  EXPECT_TRUE(AllAre(At(1), 9));
  EXPECT_TRUE(child.Ended());
}

TEST_F(ForkTest, EveryForkAndEveryGenerationHasItsOwn) {
  Make(0, 1);
  for (int round = 1; round <= 10; ++round) {
    std::memset(At(0), round, kChunk);
    Child child([&] {
      Child grandchild([&] {
        const bool inherited = AllAre(At(0), round);
        std::memset(At(0), 100, kChunk);
        return inherited;
      });
      const bool well = grandchild.Ended();
      return well && AllAre(At(0), round);
    });
    std::memset(At(0), 50, kChunk);
    EXPECT_TRUE(child.Ended()) << round;
    EXPECT_TRUE(AllAre(At(0), 50)) << round;
  }
}

TEST_F(ForkTest, BytesThatTheParentFreesAndReusesStayInTheChild) {
  const ChunkHandle chunk = Make(0, 1);
  Signal reused;
  Child child([&] {
    reused.Await();
    return AllAre(At(0), 1);
  });
  Drop(0, chunk);
  for (int i = 0; i < 8; ++i) {
    const ChunkHandle other = Make(i, 3);
    if (i % 2 == 1) Drop(i, other);
  }
  reused.Give();
  EXPECT_TRUE(child.Ended());
}

TEST_F(ForkTest, AChunkThatIsMappedAgainDoesNotReachTheChild) {
  const ChunkHandle chunk = Make(0, 1);
  Signal moved;
  Child child([&] {
    moved.Await();
    return AllAre(At(0), 1);
  });
  ASSERT_TRUE(driver_->Unmap(base_, kChunk).ok());
  Map(5, chunk);
  std::memset(At(5), 8, kChunk);
  moved.Give();
  EXPECT_TRUE(child.Ended());
  EXPECT_TRUE(AllAre(At(5), 8));
}

TEST_F(ForkTest, MemoryThatAChildKeptIsFreeAtOnceAndReused) {
  std::vector<ChunkHandle> chunks;
  for (int i = 0; i < 16; ++i) chunks.push_back(Make(i, i));
  EXPECT_EQ(Free(), 0u);
  Signal done;
  Child child([&] {
    done.Await();
    return AllAre(At(3), 3);
  });
  for (int i = 0; i < 16; ++i) Drop(i, chunks[i]);
  EXPECT_EQ(Free(), kMiB);  // a limit is the parent's own
  for (int i = 0; i < 16; ++i) chunks[i] = Make(i, 40 + i);
  EXPECT_EQ(Free(), 0u);
  EXPECT_TRUE(HasForkChildren());
  done.Give();
  EXPECT_TRUE(child.Ended());
  EXPECT_FALSE(HasForkChildren());
  for (int i = 0; i < 16; ++i) EXPECT_TRUE(AllAre(At(i), 40 + i));
  // Without children, chunks that are made or mapped anew are shared as ever.
  Drop(0, chunks[0]);
  Drop(1, chunks[1]);
  const ChunkHandle shared = Make(0, 5);
  Map(1, shared);
  std::memset(At(1), 6, kChunk);
  EXPECT_TRUE(AllAre(At(0), 6));
}

TEST_F(ForkTest, AForkBesideWritingThreadsIsASinglePointInTime) {
  Make(0, 0);
  auto* const words = reinterpret_cast<std::atomic<std::uint64_t>*>(At(0));
  std::atomic<std::uint64_t> published{0};  // in memory of the process: copied by the kernel
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (std::uint64_t i = 1; !stop.load(); ++i) {
      words[i % (kChunk / 8)].store(i, std::memory_order_relaxed);
      published.store(i, std::memory_order_release);
    }
  });
  for (int round = 0; round < 50; ++round) {
    Child child([&] {
      const std::uint64_t last = published.load(std::memory_order_acquire);
      return words[last % (kChunk / 8)].load() >= last;
    });
    EXPECT_TRUE(child.Ended()) << round;
  }
  stop.store(true);
  writer.join();
}

TEST_F(ForkTest, BytesThatAreElsewhereAreLeftToTheChild) {
  struct Elsewhere : ForkListener {
    void BeforeFork() override { driver->LeaveToChild(address, bytes.data(), bytes.size()); }
    void AfterFork(ForkSide) override {}
    HostDriver* driver = nullptr;
    Address address;
    std::vector<unsigned char> bytes;
  } listener;
  listener.driver = driver_.get();
  listener.address = base_ + 2 * kChunk;
  listener.bytes.assign(kChunk, 77);
  AddForkListener(LockRank::kArena, &listener);
  Child child([&] { return AllAre(At(2), 77); });
  EXPECT_TRUE(child.Ended());
  RemoveForkListener(&listener);
}

TEST(ForkMarkTest, KnowsItsProcess) {
  const ForkMark mark;
  EXPECT_FALSE(mark.IsInChild());
  Child child([&] { return mark.IsInChild() && !ForkMark().IsInChild(); });
  EXPECT_TRUE(child.Ended());
  EXPECT_FALSE(mark.IsInChild());
}

TEST(ForkMarkTest, AChildMayHaveItsOwnDriver) {
  Child child([] {
    auto driver = HostDriver::Open({.total_bytes = kMiB, .granularity = kChunk});
    return driver.ok() && (*driver)->Create(kChunk).ok();
  });
  EXPECT_TRUE(child.Ended());
}

}  // namespace
}  // namespace thimble
