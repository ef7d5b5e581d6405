#include "allocator/driver/cost_driver.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace thimble {

void CostDriver::Pay(DriverCall call, double us) {
  calls_.Add(call);
  MutexLock lock(&mutex_);
  spent_us_[static_cast<std::size_t>(call)] += us;
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

absl::StatusOr<Address> CostDriver::Reserve(Bytes bytes, Bytes alignment) {
  Pay(DriverCall::kReserve, prices_.reserve_us);
  return base().Reserve(bytes, alignment);
}

absl::Status CostDriver::Release(Address address, Bytes bytes) {
  Pay(DriverCall::kRelease, prices_.release_us);
  return base().Release(address, bytes);
}

absl::StatusOr<ChunkHandle> CostDriver::Create(Bytes bytes) {
  Pay(DriverCall::kCreate, prices_.create_us);
  return base().Create(bytes);
}

absl::Status CostDriver::Destroy(ChunkHandle chunk) {
  Pay(DriverCall::kDestroy, prices_.destroy_us);
  return base().Destroy(chunk);
}

absl::Status CostDriver::Map(Address address, Bytes bytes, ChunkHandle chunk) {
  Pay(DriverCall::kMap, prices_.map_us);
  const absl::Status status = base().Map(address, bytes, chunk);
  if (status.ok()) {
    MutexLock lock(&mutex_);
    mappings_.insert(address);
  }
  return status;
}

absl::Status CostDriver::Unmap(Address address, Bytes bytes) {
  Pay(DriverCall::kUnmap, prices_.unmap_us);
  std::set<Address>::node_type known;
  {
    // Before the base: as soon as it has unmapped, another thread may map here again.
    MutexLock lock(&mutex_);
    known = mappings_.extract(address);
  }
  const absl::Status status = base().Unmap(address, bytes);
  if (!status.ok()) {
    MutexLock lock(&mutex_);
    mappings_.insert(std::move(known));
  }
  return status;
}

absl::Status CostDriver::SetAccess(Address address, Bytes bytes) {
  Pay(DriverCall::kSetAccess,
      prices_.set_access_us * static_cast<double>(MappingsIn(address, bytes)));
  return base().SetAccess(address, bytes);
}

absl::Status CostDriver::Copy(Address device, void* host, Bytes bytes, CopyDirection direction) {
  const double size = static_cast<double>(bytes);
  Pay(DriverCall::kCopy, direction == CopyDirection::kToHost
                             ? prices_.copy_out_us + size / prices_.copy_out_bytes_per_us
                             : prices_.copy_in_us + size / prices_.copy_in_bytes_per_us);
  return base().Copy(device, host, bytes, direction);
}

absl::Status CostDriver::PinHost(void* host, Bytes bytes) {
  Pay(DriverCall::kPinHost, 0);
  return base().PinHost(host, bytes);
}

absl::Status CostDriver::UnpinHost(void* host) {
  Pay(DriverCall::kUnpinHost, 0);
  return base().UnpinHost(host);
}

absl::StatusOr<StreamSeq> CostDriver::Record(StreamId stream) {
  Pay(DriverCall::kRecord, 0);
  return base().Record(stream);
}

absl::StatusOr<bool> CostDriver::Passed(StreamId stream, StreamSeq point) {
  Pay(DriverCall::kPassed, 0);
  return base().Passed(stream, point);
}

absl::Status CostDriver::Wait(StreamId stream, StreamSeq point) {
  Pay(DriverCall::kWait, 0);
  return base().Wait(stream, point);
}

absl::StatusOr<MemoryInfo> CostDriver::GetMemoryInfo() {
  Pay(DriverCall::kGetMemoryInfo, 0);
  return base().GetMemoryInfo();
}

}  // namespace thimble
