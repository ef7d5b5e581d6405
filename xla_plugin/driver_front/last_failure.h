// The report of the last request that did not fit, for whoever raises an exception about it: until
// it is taken, or a request as large fits after all. XLA asks twice before it gives up.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <limits>
#include <mutex>
#include <string>

namespace thimble::xla {

class LastFailure {
 public:
  void Set(std::size_t bytes, std::string report);

  // A request of so many bytes fitted. One comparison, unless that is as many as the one that
  // failed.
  void Fits(std::size_t bytes) {
    if (bytes >= bytes_.load(std::memory_order_relaxed)) Take();
  }

  // "" if there is none.
  std::string Take();

 private:
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  std::atomic<std::size_t> bytes_{kNone};  // changed with mutex_ held
  std::mutex mutex_;                       // for what follows
  std::string report_;
};

}  // namespace thimble::xla
