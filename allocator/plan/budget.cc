#include "allocator/plan/budget.h"

#include <algorithm>
#include <chrono>

namespace thimble::plan {
namespace {

constexpr std::uint64_t kWorkPerLook = 4096;

std::int64_t NowNs() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

std::int64_t DeadlineNs(double seconds) {
  constexpr double kLongest = 1e9;  // seconds; far from the end of the clock
  return NowNs() + static_cast<std::int64_t>(1e9 * std::clamp(seconds, 0.0, kLongest));
}

}  // namespace

Budget::Budget(const SolveOptions& options)
    : options_(options), deadline_ns_(DeadlineNs(options.seconds)) {
  Look();
}

bool Budget::is_cancelled() const {
  return options_.cancel != nullptr && options_.cancel->load(std::memory_order_relaxed);
}

void Budget::Look() {
  next_look_ = std::min(spent_ + kWorkPerLook, options_.max_work);
  is_over_ = is_over_ || spent_ >= options_.max_work || is_cancelled() || NowNs() >= deadline_ns_;
}

}  // namespace thimble::plan
