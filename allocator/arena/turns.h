// Whose turn it is while ops run one after the other that would have run side by side.
//
// Ops begin in the order in which they would have begun side by side. That order is kept in a time
// of its own, in which every thread's op begins where its last one ended, however long others ran
// meanwhile. Threads that came back first served first would alternate op by op instead: a chain of
// short ops on one thread would wait for as many long ones of another, and what depends on the
// order of both, such as a sum that adds up its terms as they arrive, would end otherwise.
//
// A thread that has been away begins where the last op ended: most likely that one called it.
//
// The caller tells what time it is and guards the turns by a mutex.
#pragma once

#include <chrono>
#include <thread>
#include <vector>

namespace thimble {

class Turns {
 public:
  using Clock = std::chrono::steady_clock;
  using Thread = std::thread::id;

  // A thread that is back so soon was not away: its turn may come before that of those who wait.
  static constexpr std::chrono::microseconds kComesBack{200};
  // An op counts for no more than that, so that a thread is not held up by its own long ops.
  static constexpr std::chrono::milliseconds kLongest{100};

  // `thread`, which does not have the turn, waits for it from now on.
  void Ask(Thread thread, Clock::time_point now);
  // It no longer waits.
  void GiveUp(Thread thread);
  // When it may begin if nothing changes: the end of time if others come first.
  Clock::time_point MayBeginAt(Thread thread) const;
  // It waited, and its turn begins.
  void Begin(Thread thread, Clock::time_point now);

  bool IsTurnOf(Thread thread) const { return depth_ > 0 && thread_ == thread; }
  // The thread whose turn it is runs an op within its op: one more End() ends the turn.
  void BeginInner() { ++depth_; }
  // If it is the turn of `thread`: so long it did nothing but wait.
  void Exclude(Thread thread, Clock::duration waited);
  // If it is the turn of `thread`: its op ends. Whether the turn is over.
  bool End(Thread thread, Clock::time_point now);

  // Nobody waits, and nobody has the turn.
  void Clear() { *this = Turns(); }

 private:
  using Time = Clock::duration;  // side by side

  struct Waiting {
    Thread thread;
    Time begin;
  };
  struct Away {  // between two ops
    Thread thread;
    Time end;  // of its last op
    Clock::time_point since;
  };

  Thread thread_;  // whose turn it is, if depth_ > 0
  int depth_ = 0;
  Time begin_{0};            // of its op
  Clock::time_point since_;  // when it began, later by what is excluded
  Time last_end_{0};
  std::vector<Waiting> waiting_;  // by begin, then by arrival
  std::vector<Away> away_;        // for kLongest at most, longest first
};

}  // namespace thimble
