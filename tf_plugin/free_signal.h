// Lets a request that did not fit wait until something is freed.
//
// While nobody waits, a free costs one load. No free is missed: a waiter counts itself before it
// tries, so a free that comes too late for that try sees the waiter.
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace thimble::tf {

class FreeSignal {
 public:
  // To be called after every free.
  void Freed() {
    if (waiters_.load() == 0) return;
    absl::MutexLock lock(&mutex_);
    ++frees_;
    freed_.SignalAll();
  }

  // Calls `try_allocate` now and after every free until it succeeds or `timeout` has passed.
  // Returns null if every attempt failed; the last one comes after the timeout.
  template <typename Try>
  void* TryUntil(absl::Duration timeout, Try try_allocate) {
    const absl::Time deadline = absl::Now() + timeout;
    waiters_.fetch_add(1);
    void* block = nullptr;
    bool expired = false;
    while (true) {
      const std::uint64_t seen = frees();
      block = try_allocate();
      if (block != nullptr || expired) break;
      expired = !WaitBeyond(seen, deadline);
    }
    waiters_.fetch_sub(1);
    return block;
  }

 private:
  std::uint64_t frees() {
    absl::MutexLock lock(&mutex_);
    return frees_;
  }

  // False if the deadline came first.
  bool WaitBeyond(std::uint64_t seen, absl::Time deadline) {
    absl::MutexLock lock(&mutex_);
    while (frees_ == seen) {
      if (freed_.WaitWithDeadline(&mutex_, deadline)) return false;
    }
    return absl::Now() < deadline;
  }

  std::atomic<int> waiters_{0};
  absl::Mutex mutex_;
  absl::CondVar freed_;
  std::uint64_t frees_ ABSL_GUARDED_BY(mutex_) = 0;  // counted only while somebody waits
};

}  // namespace thimble::tf
