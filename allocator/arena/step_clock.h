// How long a step of training takes.
//
// Requests and ops carry the number of their step. TensorFlow numbers everything that Python calls
// by itself, too: only what has about as much in it as any step so far is one, if that is not very
// little, and if it was so twice.
//
// Not thread-safe: the owning Arena holds its mutex (LockRank::kArena) around every call.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace thimble {

class StepClock {
 public:
  using Clock = std::chrono::steady_clock;

  // A request or an op of `step`, 0 if that is not known. Whether the step begins with it. Threads
  // begin one while others end the last, so two are under way.
  bool Count(std::uint64_t step, Clock::time_point (*now)() = Clock::now) {
    if (step == 0 || step == last_) return false;
    if (step == current_.number) {
      ++current_.count;
      return false;
    }
    const Clock::time_point time = now();
    End(time);
    last_ = current_.number;
    current_ = {step, 1, time};
    return true;
  }

  // Of the last whole step; 0 if it is not known what a step is.
  std::chrono::nanoseconds length() const {
    const bool is_known = whole_ > 1 && most_ >= kFewest && !IsLarger(current_.count);
    return is_known ? length_ : std::chrono::nanoseconds(0);
  }

 private:
  struct Step {
    std::uint64_t number = 0;
    std::uint64_t count = 0;  // of its requests and ops
    Clock::time_point began;
  };

  // Than any step before, by more than steps differ from one another.
  bool IsLarger(std::uint64_t count) const { return count - count / kDiffer > most_; }

  void End(Clock::time_point time) {
    if (current_.count < most_ - most_ / kDiffer) return;
    whole_ = IsLarger(current_.count) ? 1 : whole_ + 1;
    most_ = std::max(most_, current_.count);
    length_ = time - current_.began;
  }

  static constexpr std::uint64_t kDiffer = 10;  // by one part in so many
  static constexpr std::uint64_t kFewest = 16;  // requests and ops of a step

  Step current_;
  std::uint64_t last_ = 0;   // the step before
  std::uint64_t most_ = 0;   // in any whole step
  std::uint64_t whole_ = 0;  // steps with about as many
  std::chrono::nanoseconds length_{0};
};

}  // namespace thimble
