#include "allocator/offline/schedule/machine.h"

namespace thimble::schedule {
namespace {

Ns CopyNs(std::int64_t bytes, std::int64_t bytes_per_second, Ns latency) {
  constexpr __int128 kNsPerSecond = 1000000000;
  const __int128 ns = (bytes * kNsPerSecond + bytes_per_second - 1) / bytes_per_second;
  return latency + static_cast<Ns>(ns);
}

}  // namespace

Ns OutNs(const Machine& machine, std::int64_t bytes) {
  return CopyNs(bytes, machine.out_bytes_per_second, machine.out_latency_ns);
}

Ns InNs(const Machine& machine, std::int64_t bytes) {
  return CopyNs(bytes, machine.in_bytes_per_second, machine.in_latency_ns);
}

}  // namespace thimble::schedule
