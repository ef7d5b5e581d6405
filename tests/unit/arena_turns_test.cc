// Ops that take turns on an arena whose memory is short.
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/unit/arena_fixture.h"

namespace thimble {
namespace {

class ArenaTurns : public ArenaTest {
 protected:
  void SetUp() override {
    ArenaOptions options;
    options.swap = SwapMode::kAuto;
    Make(4 * kChunk, options);
    Allocate(4 * kChunk);
  }

  void TakeTurn() {
    EXPECT_TRUE(arena_->Pin({}, {/*key=*/0, /*step=*/0, /*takes_turn=*/true}).ok());
  }
  void LeaveTurn() { EXPECT_TRUE(arena_->Unpin({}, {}, kFirst, /*takes_turn=*/true).ok()); }
};

TEST_F(ArenaTurns, OpsRunOneAfterTheOther) {
  TakeTurn();
  TakeTurn();  // an op within an op
  std::atomic<bool> had_turn{false};
  std::thread other([&] {
    TakeTurn();
    had_turn = true;
    LeaveTurn();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(had_turn);
  LeaveTurn();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(had_turn);
  LeaveTurn();
  other.join();
  EXPECT_TRUE(had_turn);
}

// Returns when the thread that names itself in `thread` sleeps.
void WaitUntilItSleeps(const std::atomic<pid_t>& thread) {
  for (char state = 'R'; state != 'S'; std::this_thread::yield()) {
    std::ifstream file("/proc/self/task/" + std::to_string(thread.load()) + "/stat");
    std::string word;
    file >> word >> word >> state;
  }
}

// While one op has the turn, others arrive one by one. The thread that has it comes again at once
// when it leaves, and must not overtake them.
TEST_F(ArenaTurns, WaitingOpsComeBeforeTheThreadThatHadTheTurn) {
  constexpr int kOps = 4;
  TakeTurn();
  std::vector<int> order;  // guarded by the turn
  std::vector<std::thread> ops;
  std::atomic<pid_t> last{0};
  for (int op = 0; op < kOps; ++op) {
    last = 0;
    ops.emplace_back([&, op] {
      last = static_cast<pid_t>(syscall(SYS_gettid));
      TakeTurn();
      order.push_back(op);
      LeaveTurn();
    });
    WaitUntilItSleeps(last);
  }
  LeaveTurn();
  TakeTurn();
  order.push_back(kOps);
  LeaveTurn();
  for (std::thread& op : ops) op.join();
  EXPECT_EQ(order, std::vector<int>({0, 1, 2, 3, 4}));
}

// Two ops wait behind one that does not end. Neither waits forever, nor behind the other.
TEST_F(ArenaTurns, NoOpWaitsLong) {
  TakeTurn();
  std::vector<std::thread> ops;
  for (int op = 0; op < 2; ++op) {
    ops.emplace_back([&] {
      TakeTurn();
      LeaveTurn();
    });
  }
  for (std::thread& op : ops) op.join();
  LeaveTurn();
}

// The thread that has the turn is not there in a child.
TEST_F(ArenaTurns, AChildDoesNotWaitForItsParent) {
  constexpr int kOps = 8;
  TakeTurn();
  std::thread other([&] {
    const pid_t child = fork();
    if (child == 0) {
      const auto begin = std::chrono::steady_clock::now();
      for (int op = 0; op < kOps; ++op) {
        TakeTurn();
        LeaveTurn();
      }
      const auto took = std::chrono::steady_clock::now() - begin;
      _exit(took < kOps * Swapper::kTurnPatience / 2 ? 0 : 1);
    }
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  });
  other.join();
  LeaveTurn();
}

}  // namespace
}  // namespace thimble
