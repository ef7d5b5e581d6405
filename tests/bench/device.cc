#include "tests/bench/device.h"

#include <utility>

#include "allocator/base/check.h"

namespace thimble::bench {
namespace {

std::unique_ptr<HostDriver> OpenHost(Bytes capacity) {
  HostOptions options;
  options.total_bytes = capacity;
  absl::StatusOr<std::unique_ptr<HostDriver>> host = HostDriver::Open(options);
  THIMBLE_CHECK(host.ok(), "a host driver can be opened");
  return *std::move(host);
}

}  // namespace

Device::Device(Bytes capacity) : host_(OpenHost(capacity)), cost_(*host_), timed_(cost_) {}

Bytes Device::reserved_bytes() const {
  const absl::StatusOr<MemoryInfo> info = host_->GetMemoryInfo();
  THIMBLE_CHECK(info.ok(), "the host driver knows its memory");
  return info->total_bytes - info->free_bytes;
}

}  // namespace thimble::bench
