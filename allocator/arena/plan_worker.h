// The thread that packs plans while training goes on. It starts with the first plan that is wanted
// and sleeps between two.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "allocator/base/mutex.h"

namespace thimble {

class PlanWorker {
 public:
  // Called without a lock. Returns within milliseconds once `cancel` is true.
  using Work = std::function<void(const std::atomic<bool>& cancel)>;

  explicit PlanWorker(Work work) : work_(std::move(work)) {}
  // Cancels what is under way and waits for its end.
  ~PlanWorker();
  PlanWorker(const PlanWorker&) = delete;
  PlanWorker& operator=(const PlanWorker&) = delete;

  // The work is done once more. False if the system has no thread for it.
  bool Wake();

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
