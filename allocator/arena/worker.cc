#include "allocator/arena/worker.h"

#include <system_error>

namespace thimble {

Worker::~Worker() {
  std::thread thread;
  {
    MutexLock lock(&mutex_);
    cancel_.store(true);
    thread = std::move(thread_);
  }
  changed_.notify_all();
  if (thread.joinable()) thread.join();
}

bool Worker::Wake() {
  MutexLock lock(&mutex_);
  if (!thread_.joinable()) {
    try {
      thread_ = std::thread([this] { Run(); });
    } catch (const std::system_error&) {
      return false;
    }
  }
  is_wanted_ = true;
  is_idle_.store(false);
  changed_.notify_all();
  return true;
}

void Worker::WaitUntilIdle() {
  if (is_idle_.load()) return;
  MutexLock lock(&mutex_);
  while (!is_idle_.load()) mutex_.Wait(changed_);
}

void Worker::Run() {
  mutex_.Lock();
  while (!cancel_.load()) {
    if (!is_wanted_) {
      mutex_.Wait(changed_);
      continue;
    }
    is_wanted_ = false;
    mutex_.Unlock();
    work_(cancel_);
    mutex_.Lock();
    is_idle_.store(!is_wanted_);
    changed_.notify_all();
  }
  mutex_.Unlock();
}

}  // namespace thimble
