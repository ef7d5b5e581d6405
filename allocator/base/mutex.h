// The only locks in Thimble. Each has a rank; a thread may only take a lock of a higher rank than
// every lock it holds. Debug builds (THIMBLE_DEBUG) check that on every Lock and stop at the first
// violation, long before it becomes a deadlock.
//
// std::mutex underneath, not absl::Mutex: TSan must see it, and Debian's Abseil is not
// instrumented.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "absl/base/thread_annotations.h"

namespace thimble {

// The lock order, outermost first. allocator/README.md explains who holds what.
enum class LockRank : std::uint8_t {
  kRegistry = 1,  // which arenas exist (process)
  kArena = 2,     // one per device: the slow path
  kRack = 3,      // one per arena: which magazines it has
  kMagazine = 4,  // one per thread and arena: cached small blocks
  kDriver = 5,    // one per driver: its own tables
  kEventLog = 6,  // one per log: the buffer on its way to the file
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
    mutex_.lock();
  }
  void Unlock() ABSL_UNLOCK_FUNCTION() {
    mutex_.unlock();
#ifdef THIMBLE_DEBUG
    NoteUnlock(rank_);
#endif
  }

  // Waits on `condition` until notified or until `deadline`; the lock is held again on return.
  void WaitUntil(std::condition_variable& condition, std::chrono::steady_clock::time_point deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(this) {
    std::unique_lock<std::mutex> lock(mutex_, std::adopt_lock);
    condition.wait_until(lock, deadline);
    lock.release();
  }

 private:
  std::mutex mutex_;
  [[maybe_unused]] const LockRank rank_;
};

// For a few instructions at a time, practically without contention: a thread's own magazine, which
// others touch only when memory runs out. Yields when it must wait.
class ABSL_LOCKABLE SpinLock {
 public:
  explicit SpinLock(LockRank rank) : rank_(rank) {}
  SpinLock(const SpinLock&) = delete;
  SpinLock& operator=(const SpinLock&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
#ifdef THIMBLE_DEBUG
    NoteLock(rank_);
#endif
    while (locked_.exchange(true, std::memory_order_acquire)) std::this_thread::yield();
  }
  void Unlock() ABSL_UNLOCK_FUNCTION() {
    locked_.store(false, std::memory_order_release);
#ifdef THIMBLE_DEBUG
    NoteUnlock(rank_);
#endif
  }

 private:
  std::atomic<bool> locked_{false};
  [[maybe_unused]] const LockRank rank_;
};

// Holds a Mutex or a SpinLock for a scope.
template <typename LockType>
class ABSL_SCOPED_LOCKABLE ScopedLock {
 public:
  explicit ScopedLock(LockType* lock) ABSL_EXCLUSIVE_LOCK_FUNCTION(lock) : lock_(lock) {
    lock_->Lock();
  }
  ~ScopedLock() ABSL_UNLOCK_FUNCTION() { lock_->Unlock(); }
  ScopedLock(const ScopedLock&) = delete;
  ScopedLock& operator=(const ScopedLock&) = delete;

 private:
  LockType* const lock_;
};
using MutexLock = ScopedLock<Mutex>;
using SpinLockHolder = ScopedLock<SpinLock>;

}  // namespace thimble
