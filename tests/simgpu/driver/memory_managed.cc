// The half of Memory that serves managed memory. Its bytes lie at the addresses that devices use,
// so the host reads and writes them as well.
#include <sys/mman.h>

#include <utility>

#include "tests/simgpu/driver/memory.h"

namespace simgpu {
namespace {

thread_local Movement moved_by_thread;

Bytes WholePages(Bytes bytes) { return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes; }

// The host may use these addresses from now on, or no longer; their bytes are zeros.
bool ShowToHost(Address address, Bytes bytes, int protection) {
  return mmap(reinterpret_cast<void*>(address), bytes, protection,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
}

}  // namespace

Outcome Memory::AllocateManaged(int device, Bytes bytes, Address* address) {
  if (bytes == 0) return Failure(CUDA_ERROR_INVALID_VALUE);
  std::lock_guard<std::mutex> lock(mutex_);
  const Address begin = bytes > kMostBlock ? 0 : addresses_.Take(WholePages(bytes), kPageBytes);
  if (begin == 0) return Failure(CUDA_ERROR_OUT_OF_MEMORY);
  if (!ShowToHost(begin, WholePages(bytes), PROT_READ | PROT_WRITE)) {
    addresses_.Give(begin, "");
    return Failure(CUDA_ERROR_OUT_OF_MEMORY);
  }
  Segment segment;
  segment.host = reinterpret_cast<char*>(begin);
  segment.device = device;
  segment.kind = Kind::kManaged;
  segment.access = ~0u;
  segments_.Insert(begin, bytes, std::move(segment));
  managed_ += bytes;
  *address = begin;
  return Success();
}

void Memory::HideManaged(Address address, Bytes bytes) {
  ShowToHost(address, WholePages(bytes), PROT_NONE);
  paging_.Forget(address, bytes);
  starts_.erase(starts_.lower_bound(address), starts_.lower_bound(address + bytes));
  managed_ -= bytes;
}

bool Memory::ChargeLocked(int device, Kind kind, Bytes bytes) {
  if (!accounts_.Charge(device, kind, bytes)) return false;
  if (device != kHost) moved_by_thread += paging_.Shrink(device, RoomOf(device));
  return true;
}

void Memory::Touch(int device, Address address, Bytes bytes) {
  if (managed_ == 0) return;
  std::lock_guard<std::mutex> lock(mutex_);
  TouchLocked(device, address, bytes);
}

void Memory::TouchBlock(int device, Address address, Bytes least) {
  if (managed_ == 0) return;
  std::lock_guard<std::mutex> lock(mutex_);
  // What starts inside is of the past.
  starts_.erase(starts_.upper_bound(address), starts_.lower_bound(address + least));
  const auto next = starts_.upper_bound(address);
  const auto found = segments_.Holding(address);
  const bool is_known = next != starts_.end() && found == segments_.Holding(*next);
  TouchLocked(device, address, is_known ? *next - address : least);
}

void Memory::TouchLocked(int device, Address address, Bytes bytes) {
  const auto found = segments_.Holding(address);
  if (found == segments_.end() || found->second.value.kind != Kind::kManaged) return;
  const int user = device == kAnyDevice ? found->second.value.device : device;
  const Bytes rest = found->first + found->second.bytes - address;
  starts_.insert(address);
  moved_by_thread += paging_.Touch(user, address, std::min(bytes, rest), RoomOf(user));
}

Outcome Memory::Prefetch(Address address, Bytes bytes, int to) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = segments_.Holding(address);
  if (found == segments_.end() || found->second.value.kind != Kind::kManaged ||
      found->first + found->second.bytes - address < bytes) {
    return Illegal(CUDA_ERROR_INVALID_VALUE, Hex(address) + " with " + std::to_string(bytes) +
                                                 " bytes is not managed memory: it is " +
                                                 Describe(address));
  }
  moved_by_thread += paging_.Prefetch(to, address, bytes, to == kHost ? 0 : RoomOf(to));
  return Success();
}

Movement Memory::TakeMovement() { return std::exchange(moved_by_thread, {}); }

PageCounts Memory::PagesOf(int device) {
  std::lock_guard<std::mutex> lock(mutex_);
  return paging_.Of(device);
}

}  // namespace simgpu
