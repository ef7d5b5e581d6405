// What happens when the process forks.
//
// A child gets one thread, the one that forked, and a copy of everything in memory: also of locks
// that other threads hold, which nobody will ever unlock there. So arenas are not used in a child:
// each has a ForkMark, and refuses there. But the bytes that callers hold must stay theirs on both
// sides. ForkListeners see to that; between BeforeFork() and AfterFork() no thread of the parent
// can change what they guard.
#pragma once

#include <atomic>
#include <cstdint>

#include "allocator/base/mutex.h"

namespace thimble {

enum class ForkSide : std::uint8_t { kParent, kChild };

class ForkListener {
 public:
  virtual ~ForkListener() = default;

  // Takes its locks, all of one rank, and prepares what the child will find.
  virtual void BeforeFork() = 0;
  // Gives them back, in both processes.
  virtual void AfterFork(ForkSide side) = 0;
};

// Listeners of a lower rank are told first about a fork, and last that it is over. `listener` is
// removed before it goes.
void AddForkListener(LockRank rank, ForkListener* listener);
void RemoveForkListener(ForkListener* listener);

// Remembers the process it was made in.
class ForkMark {
 public:
  ForkMark();
  // Whether this is a child of that process, by one fork or several.
  bool IsInChild() const { return forks_ != count_.load(std::memory_order_relaxed); }

 private:
  friend void CountFork();
  static std::atomic<std::uint64_t> count_;  // of forks that lead to this process

  const std::uint64_t forks_;
};

// Whether a child that was forked while there were listeners, or one of its own children, still
// runs this program. A child that closes all of its descriptors is not seen.
bool HasForkChildren();

}  // namespace thimble
