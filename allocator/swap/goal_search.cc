#include "allocator/swap/goal_search.h"

#include <algorithm>

namespace thimble {
namespace {

constexpr int kRoundsToLearn = 3;
constexpr int kSlowRounds = 2;  // after these the goal was too low
constexpr Bytes kFine = 32;     // stop when the interval is this part of what is needed
constexpr std::uint64_t kMillion = 1000000;

}  // namespace

bool GoalSearch::IsTooSlow(const Round& round) const {
  const std::uint64_t worked = round.elapsed_ns - std::min(round.waited_ns, round.elapsed_ns);
  return static_cast<double>(round.waited_ns) * kMillion >
         static_cast<double>(worked) * static_cast<double>(slowdown_);
}

// Tries the middle, or keeps the goal that was found.
Bytes GoalSearch::Try() {
  const bool is_near = high_ - low_ <= needed_ / kFine;
  state_ = is_near ? State::kFound : State::kSettles;
  rounds_ = 0;
  tried_ = is_near ? high_ : low_ + (high_ - low_) / 2;
  return tried_;
}

Bytes GoalSearch::After(const Round& round) {
  switch (state_) {
    case State::kLearns:
      needed_ = std::max(needed_, round.reserved);
      if (++rounds_ < kRoundsToLearn) return limit_;
      high_ = needed_;
      return Try();
    case State::kSettles:
      state_ = State::kJudges;
      return tried_;
    case State::kJudges:
      (IsTooSlow(round) ? low_ : high_) = tried_;
      return Try();
    case State::kFound:
      rounds_ = IsTooSlow(round) ? rounds_ + 1 : 0;
      if (rounds_ < kSlowRounds) return tried_;
      low_ = high_;
      high_ = needed_ = std::min(limit_, 2 * std::max(needed_, high_));
      return Try();
  }
  return limit_;
}

}  // namespace thimble
