// Searches for the least memory with which training waits no longer than option swap_slowdown
// allows.
//
// Time is cut into rounds of about two steps. The first rounds only measure. Then the search
// bisects: a goal was too low if ops waited too long, else it was high enough. Every goal has one
// round to take effect and one to be judged. The goal that was found stays until two rounds in a
// row wait too long; then the search begins anew above it.
//
// Pure bookkeeping; not thread-safe.
#pragma once

#include <cstdint>

#include "allocator/base/bytes.h"

namespace thimble {

class GoalSearch {
 public:
  // What was measured in a round.
  struct Round {
    std::uint64_t elapsed_ns = 0;
    std::uint64_t waited_ns = 0;  // by ops and requests, for copies
    Bytes reserved = 0;           // at its end
  };

  // Waiting may take at most `slowdown` parts per million of the time without waiting. The most
  // memory is `limit` bytes.
  GoalSearch(std::uint64_t slowdown, Bytes limit) : slowdown_(slowdown), limit_(limit) {}

  // The goal for the next round: how much may be reserved.
  Bytes After(const Round& round);

  bool is_found() const { return state_ == State::kFound; }

 private:
  enum class State : std::uint8_t { kLearns, kSettles, kJudges, kFound };

  bool IsTooSlow(const Round& round) const;
  Bytes Try();

  const std::uint64_t slowdown_;
  const Bytes limit_;
  State state_ = State::kLearns;
  int rounds_ = 0;    // in this state
  Bytes low_ = 0;     // too little
  Bytes high_ = 0;    // enough
  Bytes needed_ = 0;  // without swapping
  Bytes tried_ = 0;
};

}  // namespace thimble
