// A thread for what is done while training goes on: packing plans, copying blocks. It starts with
// the first work that is wanted and sleeps in between.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "allocator/base/mutex.h"

namespace thimble {

class Worker {
 public:
  // Called without a lock. Returns within milliseconds once `cancel` is true.
  using Work = std::function<void(const std::atomic<bool>& cancel)>;

  explicit Worker(Work work) : work_(std::move(work)) {}
  // Cancels what is under way and waits for its end.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // The work is done once more. False if the system has no thread for it.
  bool Wake();

  bool is_idle() const { return is_idle_.load(std::memory_order_relaxed); }

  // Returns when all that was woken for is done; at once if that is so already.
  void WaitUntilIdle();

 private:
  void Run();

  const Work work_;
  std::atomic<bool> cancel_{false};
  Mutex mutex_{LockRank::kWorker};
  std::condition_variable_any changed_;
  bool is_wanted_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<bool> is_idle_{true};  // changes under mutex_
  std::thread thread_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace thimble
