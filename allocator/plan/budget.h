// Says when a search stops: at its deadline, when it is cancelled, or after a given amount of work.
// The clock decides only *where* the search stops, never what it does before. So more seconds
// continue the same search and never give a worse plan.
#pragma once

#include <atomic>
#include <cstdint>

namespace thimble::plan {

inline constexpr double kMostSeconds = 86400;  // most that commands accept

struct SolveOptions {
  double seconds = 5;                          // the first plan is finished even if it takes longer
  std::uint64_t seed = 1;                      // same problem, seed and work: same plan
  const std::atomic<bool>* cancel = nullptr;   // once true, the search returns within milliseconds
  std::int64_t target = 0;                     // stop at this height; 0: as low as possible
  std::uint64_t max_work = ~std::uint64_t{0};  // for tests: stop here, whatever the clock says
};

class Budget {
 public:
  explicit Budget(const SolveOptions& options);

  // Counts `work`, in units of a few nanoseconds. True while the search may go on. Reads the clock
  // once in about ten microseconds of work.
  bool Spend(std::uint64_t work) {
    spent_ += work;
    if (spent_ >= next_look_) Look();
    return !is_over_;
  }

  bool is_over() const { return is_over_; }
  bool is_cancelled() const;
  std::uint64_t spent() const { return spent_; }

 private:
  void Look();

  const SolveOptions options_;
  const std::int64_t deadline_ns_;
  std::uint64_t spent_ = 0;
  std::uint64_t next_look_ = 0;
  bool is_over_ = false;
};

}  // namespace thimble::plan
