// The report of the last request that did not fit, for whoever raises an exception about it: until
// it is taken, or a request as large fits after all. XLA asks twice before it gives up.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <string>

namespace thimble::xla {

class LastFailure {
 public:
  void Set(std::size_t bytes, std::string report);

  // A request of so many bytes fitted. Almost free as long as none has failed.
  void Fits(std::size_t bytes) {
    if (is_set_.load(std::memory_order_relaxed)) Forget(bytes);
  }

  // "" if there is none.
  std::string Take();

 private:
  void Forget(std::size_t bytes);

  std::atomic<bool> is_set_{false};  // changed with mutex_ held
  std::mutex mutex_;                 // for what follows
  std::size_t bytes_ = 0;
  std::string report_;
};

}  // namespace thimble::xla
