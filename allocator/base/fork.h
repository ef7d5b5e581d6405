// What happens when the process forks.
//
// A child gets one thread, the one that forked, and a copy of all memory, including locks that
// other threads hold. No thread of the child will ever release those. So an arena has a ForkMark
// and refuses calls in a child. The bytes that callers hold stay valid in both processes.
// ForkListeners ensure that: between BeforeFork() and AfterFork() no thread of the parent can
// change what they guard.
#pragma once

#include <atomic>
#include <cstdint>

#include "allocator/base/mutex.h"

namespace thimble {

enum class ForkSide : std::uint8_t { kParent, kChild };

class ForkListener {
 public:
  virtual ~ForkListener() = default;

  // Takes the listener's locks, all of one rank, and prepares its memory for the child.
  virtual void BeforeFork() = 0;
  // Releases the locks, in both processes.
  virtual void AfterFork(ForkSide side) = 0;
};

// BeforeFork() runs in rising order of rank, AfterFork() in falling order. Remove `listener` before
// its destruction.
void AddForkListener(LockRank rank, ForkListener* listener);
void RemoveForkListener(ForkListener* listener);

// Remembers the process it was made in.
class ForkMark {
 public:
  ForkMark();
  // Whether this process descends from that one by one or several forks.
  bool IsInChild() const { return forks_ != count_.load(std::memory_order_relaxed); }

 private:
  friend void CountFork();
  static std::atomic<std::uint64_t> count_;  // of forks that lead to this process

  const std::uint64_t forks_;
};

// Whether a child that was forked while there were listeners, or a child of it, still runs this
// program. A child that closes all of its descriptors is not detected.
bool HasForkChildren();

}  // namespace thimble
