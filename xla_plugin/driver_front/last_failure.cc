#include "xla_plugin/driver_front/last_failure.h"

#include <utility>

namespace thimble::xla {

void LastFailure::Set(std::size_t bytes, std::string report) {
  const std::lock_guard lock(mutex_);
  bytes_.store(bytes, std::memory_order_relaxed);
  report_ = std::move(report);
}

std::string LastFailure::Take() {
  const std::lock_guard lock(mutex_);
  bytes_.store(kNone, std::memory_order_relaxed);
  return std::exchange(report_, {});
}

}  // namespace thimble::xla
