// Keeps the report of the last request that did not fit, for the exception about it, until the
// report is taken or a request of that size fits after all: XLA asks twice before it gives up.
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

  // A request of `bytes` fitted. Costs one comparison, unless the failed request had the same size.
  void Fits(std::size_t bytes) {
    if (bytes >= bytes_.load(std::memory_order_relaxed)) Take();
  }

  // Returns "" if there is none.
  std::string Take();

 private:
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  std::atomic<std::size_t> bytes_{kNone};  // written with mutex_ held
  std::mutex mutex_;                       // guards the members below
  std::string report_;
};

}  // namespace thimble::xla
