#include "xla_plugin/driver_front/last_failure.h"

#include <utility>

namespace thimble::xla {

void LastFailure::Set(std::size_t bytes, std::string report) {
  const std::lock_guard lock(mutex_);
  bytes_ = bytes;
  report_ = std::move(report);
  is_set_.store(true, std::memory_order_relaxed);
}

std::string LastFailure::Take() {
  const std::lock_guard lock(mutex_);
  is_set_.store(false, std::memory_order_relaxed);
  return std::exchange(report_, {});
}

void LastFailure::Forget(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes < bytes_) return;
  is_set_.store(false, std::memory_order_relaxed);
  report_.clear();
}

}  // namespace thimble::xla
