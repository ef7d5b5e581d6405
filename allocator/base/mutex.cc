#include "allocator/base/mutex.h"

#include <thread>

#include "allocator/base/check.h"

namespace thimble {

#ifdef THIMBLE_DEBUG
namespace {
// One bit per rank that this thread holds. The next lock must have a higher bit than all of them,
// or the same bit during a fork.
thread_local std::uint32_t held_ranks = 0;

std::uint32_t BitOf(LockRank rank) { return std::uint32_t{1} << static_cast<unsigned>(rank); }
}  // namespace

void NoteLock(LockRank rank) {
  const bool forks = (held_ranks & BitOf(LockRank::kForks)) != 0;
  const std::uint32_t others = forks ? held_ranks & ~BitOf(rank) : held_ranks;
  THIMBLE_CHECK(others < BitOf(rank), "a lock was taken out of rank order");
  held_ranks |= BitOf(rank);
}

void NoteUnlock(LockRank rank) { held_ranks &= ~BitOf(rank); }
#else
void NoteLock(LockRank) {}
void NoteUnlock(LockRank) {}
#endif

void Mutex::LockSlow() {
  constexpr int kSpins = 64;   // a few microseconds: longer than any bookkeeping
  constexpr int kYields = 16;  // the holder may have lost its processor
  constexpr std::chrono::microseconds kNap(50);
  for (int round = 0; locked_.exchange(true, std::memory_order_acquire); ++round) {
    for (int spin = 0; spin < kSpins && locked_.load(std::memory_order_relaxed); ++spin) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
    if (!locked_.load(std::memory_order_relaxed)) continue;
    if (round < kYields) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kNap);
    }
  }
}

namespace {

// The interface that std::condition_variable_any needs.
struct Lockable {
  Mutex* mutex;
  void lock() ABSL_NO_THREAD_SAFETY_ANALYSIS { mutex->Lock(); }
  void unlock() ABSL_NO_THREAD_SAFETY_ANALYSIS { mutex->Unlock(); }
};

}  // namespace

void Mutex::Wait(std::condition_variable_any& condition) {
  Lockable lockable = {this};
  condition.wait(lockable);
}

void Mutex::WaitUntil(std::condition_variable_any& condition,
                      std::chrono::steady_clock::time_point deadline) {
  Lockable lockable = {this};
  condition.wait_until(lockable, deadline);
}

}  // namespace thimble
