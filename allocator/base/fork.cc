#include "allocator/base/fork.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"

namespace thimble {

std::atomic<std::uint64_t> ForkMark::count_{0};

void CountFork() { ForkMark::count_.fetch_add(1, std::memory_order_relaxed); }

namespace {

struct Entry {
  LockRank rank;
  ForkListener* listener;
};

// The listeners. Never destroyed, like all state below: a process may fork while it ends.
struct Forks {
  Mutex mutex{LockRank::kForks};
  std::vector<Entry> listeners ABSL_GUARDED_BY(mutex);  // lowest rank first
};

Forks& GetForks() {
  static Forks* const forks = new Forks;
  return *forks;
}

// One pipe for each child. The parent reads end of file when the last holder of the other end is
// gone, through an exit, a signal or an exec.
struct Children {
  Mutex mutex{LockRank::kForkChildren};
  std::vector<int> pipes ABSL_GUARDED_BY(mutex);
  std::array<int, 2> next_pipe ABSL_GUARDED_BY(mutex) = {-1, -1};
  bool unseen ABSL_GUARDED_BY(mutex) = false;  // one child has no pipe: no descriptor was left

  void ForgetGone() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const auto is_gone = [](int pipe) {
      pollfd state = {pipe, POLLIN, 0};
      if (poll(&state, 1, 0) <= 0) return false;
      close(pipe);
      return true;
    };
    pipes.erase(std::remove_if(pipes.begin(), pipes.end(), is_gone), pipes.end());
  }

  void Expect() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    ForgetGone();
    if (pipe2(next_pipe.data(), O_CLOEXEC) == 0) return;
    next_pipe = {-1, -1};
    unseen = true;
  }

  void KeepInParent() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const auto [ours, theirs] = std::exchange(next_pipe, {-1, -1});
    if (ours < 0) return;
    close(theirs);
    pipes.push_back(ours);
  }

  // `theirs` stays open while the child runs.
  void KeepInChild() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const auto [ours, theirs] = std::exchange(next_pipe, {-1, -1});
    if (ours >= 0) close(ours);
    for (const int sibling : pipes) close(sibling);
    pipes.clear();
    unseen = false;
  }
};

Children& GetChildren() {
  static Children* const children = new Children;
  return *children;
}

void Prepare() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  Forks& forks = GetForks();
  forks.mutex.Lock();
  for (const Entry& entry : forks.listeners) entry.listener->BeforeFork();
  Children& children = GetChildren();
  children.mutex.Lock();
  if (!forks.listeners.empty()) children.Expect();
}

void Finish(ForkSide side) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  Forks& forks = GetForks();
  Children& children = GetChildren();
  if (side == ForkSide::kParent) {
    children.KeepInParent();
  } else {
    children.KeepInChild();
    CountFork();
  }
  children.mutex.Unlock();
  for (auto entry = forks.listeners.rbegin(); entry != forks.listeners.rend(); ++entry) {
    entry->listener->AfterFork(side);
  }
  if (side == ForkSide::kChild) forks.listeners.clear();  // they guard memory of the parent
  forks.mutex.Unlock();
}

// The loader removes the handlers when it unloads this library.
void Watch() {
  static const int watching = pthread_atfork(
      Prepare, [] { Finish(ForkSide::kParent); }, [] { Finish(ForkSide::kChild); });
  static_cast<void>(watching);
}

std::uint64_t Watched(const std::atomic<std::uint64_t>& count) {
  Watch();
  return count.load(std::memory_order_relaxed);
}

}  // namespace

ForkMark::ForkMark() : forks_(Watched(count_)) {}

void AddForkListener(LockRank rank, ForkListener* listener) {
  Watch();
  Forks& forks = GetForks();
  MutexLock lock(&forks.mutex);
  const auto behind = std::find_if(forks.listeners.begin(), forks.listeners.end(),
                                   [rank](const Entry& entry) { return entry.rank > rank; });
  forks.listeners.insert(behind, {rank, listener});
}

void RemoveForkListener(ForkListener* listener) {
  Forks& forks = GetForks();
  MutexLock lock(&forks.mutex);
  forks.listeners.erase(
      std::remove_if(forks.listeners.begin(), forks.listeners.end(),
                     [listener](const Entry& entry) { return entry.listener == listener; }),
      forks.listeners.end());
}

bool HasForkChildren() {
  Children& children = GetChildren();
  MutexLock lock(&children.mutex);
  children.ForgetGone();
  return children.unseen || !children.pipes.empty();
}

}  // namespace thimble
