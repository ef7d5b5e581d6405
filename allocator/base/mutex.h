// The only locks in Thimble. Each has a rank; a thread may only take a lock of a higher rank than
// every lock it holds. Only a thread that forks may hold several locks of one rank: it holds kForks
// and takes all of them (fork.h). Debug builds (THIMBLE_DEBUG) check this on every Lock and stop at
// the first violation, before it becomes a deadlock.
//
// One kind of lock for all uses. Lock is one atomic exchange and unlock a plain store, which is
// cheaper than std::mutex; contention is rare. A waiting thread spins for as long as bookkeeping
// takes, then sleeps: by then the holder is in a driver call or not on a processor.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>

#include "absl/base/thread_annotations.h"

namespace thimble {

// The lock order, outermost first. allocator/README.md explains who holds what.
enum class LockRank : std::uint8_t {
  kForks = 0,         // the list of fork listeners (process)
  kRegistry = 1,      // which arenas exist (process)
  kArena = 2,         // one per device: the slow path
  kWorker = 3,        // one per arena: whether its thread has work
  kRack = 4,          // one per arena: which magazines it has
  kMagazine = 5,      // one per thread and arena: cached small blocks
  kDriver = 6,        // one per driver: its own tables
  kOpenLogs = 7,      // which logs are being written (process)
  kEventLog = 8,      // one per log: the buffer on its way to the file
  kForkChildren = 9,  // which children there are (process)
};

// Debug bookkeeping of the calling thread. No-ops unless THIMBLE_DEBUG.
void NoteLock(LockRank rank);
void NoteUnlock(LockRank rank);

class ABSL_LOCKABLE Mutex {
 public:
  explicit Mutex(LockRank rank) : rank_(rank) {}
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
#ifdef THIMBLE_DEBUG
    NoteLock(rank_);
#endif
    if (locked_.exchange(true, std::memory_order_acquire)) LockSlow();
  }
  void Unlock() ABSL_UNLOCK_FUNCTION() {
    locked_.store(false, std::memory_order_release);
#ifdef THIMBLE_DEBUG
    NoteUnlock(rank_);
#endif
  }

  // Waits on `condition` until notified; the lock is held again on return.
  void Wait(std::condition_variable_any& condition) ABSL_EXCLUSIVE_LOCKS_REQUIRED(this);
  // Waits on `condition` until notified or until `deadline`; the lock is held again on return.
  void WaitUntil(std::condition_variable_any& condition,
                 std::chrono::steady_clock::time_point deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(this);

 private:
  void LockSlow();

  std::atomic<bool> locked_{false};
  [[maybe_unused]] const LockRank rank_;
};

class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_->Lock();
  }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex* const mutex_;
};

}  // namespace thimble
