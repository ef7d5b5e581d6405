#include "tests/drivers/cost_driver.h"

#include <algorithm>
#include <iterator>

namespace thimble {

double CostDriver::PriceOf(const Call& call) const {
  const double size = static_cast<double>(call.bytes);
  switch (call.call) {
    case DriverCall::kReserve:
      return prices_.reserve_us;
    case DriverCall::kRelease:
      return prices_.release_us;
    case DriverCall::kCreate:
      return prices_.create_us;
    case DriverCall::kDestroy:
      return prices_.destroy_us;
    case DriverCall::kMap:
      return prices_.map_us;
    case DriverCall::kUnmap:
      return prices_.unmap_us;
    case DriverCall::kSetAccess:
      return prices_.set_access_us * static_cast<double>(MappingsIn(call.address, call.bytes));
    case DriverCall::kCopy:
      return call.direction == CopyDirection::kToHost
                 ? prices_.copy_out_us + size / prices_.copy_out_bytes_per_us
                 : prices_.copy_in_us + size / prices_.copy_in_bytes_per_us;
    default:
      return 0;
  }
}

absl::Status CostDriver::Before(const Call& call) {
  const double us = PriceOf(call);
  calls_.Add(call.call);
  MutexLock lock(&mutex_);
  spent_us_[static_cast<std::size_t>(call.call)] += us;
  // Before the base: as soon as it has unmapped, another thread may map here again.
  if (call.call == DriverCall::kUnmap) mappings_.erase(call.address);
  return absl::OkStatus();
}

void CostDriver::After(const Call& call, const absl::Status& status) {
  const bool is_mapped = (call.call == DriverCall::kMap && status.ok()) ||
                         (call.call == DriverCall::kUnmap && !status.ok());
  if (!is_mapped) return;
  MutexLock lock(&mutex_);
  mappings_.insert(call.address);
}

double CostDriver::virtual_us() const {
  double sum = 0;
  for (const DriverCall call : kAllDriverCalls) sum += virtual_us(call);
  return sum;
}

double CostDriver::virtual_us(DriverCall call) const {
  MutexLock lock(&mutex_);
  return spent_us_[static_cast<std::size_t>(call)];
}

void CostDriver::Reset() {
  calls_.Reset();
  MutexLock lock(&mutex_);
  spent_us_.fill(0);
}

std::uint64_t CostDriver::MappingsIn(Address address, Bytes bytes) const {
  MutexLock lock(&mutex_);
  const auto first = mappings_.lower_bound(address);
  const auto behind = mappings_.lower_bound(address + bytes);
  return std::max<std::uint64_t>(std::distance(first, behind), 1);
}

}  // namespace thimble
