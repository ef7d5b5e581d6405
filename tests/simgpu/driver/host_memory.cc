#include "tests/simgpu/driver/host_memory.h"

#include <sys/mman.h>

namespace simgpu {
namespace {

constexpr Bytes kPage = 4096;

Bytes WholePages(Bytes bytes) { return (bytes + kPage - 1) / kPage * kPage; }

}  // namespace

Outcome HostMemory::Allocate(Bytes bytes, const HostBlock& block, Address* address) {
  if (bytes == 0) return Failure(CUDA_ERROR_INVALID_VALUE);
  if (bytes > Bytes{1} << 46) return Failure(CUDA_ERROR_OUT_OF_MEMORY);
  void* const memory = mmap(nullptr, WholePages(bytes), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return Failure(CUDA_ERROR_OUT_OF_MEMORY);
  *address = reinterpret_cast<Address>(memory);
  std::lock_guard<std::mutex> lock(mutex_);
  blocks_.Insert(*address, bytes, block);
  return Success();
}

Outcome HostMemory::Free(HostKind kind, Address address) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = blocks_.Exactly(address);
  if (found == blocks_.end() || found->second.value.kind != kind) {
    return Illegal(CUDA_ERROR_INVALID_VALUE, Hex(address) + " is not the start of such a block");
  }
  munmap(reinterpret_cast<void*>(address), WholePages(found->second.bytes));
  blocks_.Erase(found);
  return Success();
}

Outcome HostMemory::Register(Address address, Bytes bytes, const HostBlock& block) {
  if (address == 0 || bytes == 0) return Failure(CUDA_ERROR_INVALID_VALUE);
  std::lock_guard<std::mutex> lock(mutex_);
  if (blocks_.Overlaps(address, bytes)) return Failure(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  blocks_.Insert(address, bytes, block);
  return Success();
}

Outcome HostMemory::Unregister(Address address) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = blocks_.Exactly(address);
  if (found == blocks_.end() || found->second.value.kind != HostKind::kRegistered) {
    return Illegal(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, Hex(address) + " is not registered");
  }
  blocks_.Erase(found);
  return Success();
}

bool HostMemory::Find(Address address, HostBlock* block, Address* begin, Bytes* bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = blocks_.Holding(address);
  if (found == blocks_.end()) return false;
  *block = found->second.value;
  *begin = found->first;
  *bytes = found->second.bytes;
  return true;
}

bool HostMemory::Knows(Address address) {
  std::lock_guard<std::mutex> lock(mutex_);
  return blocks_.Holding(address) != blocks_.end();
}

}  // namespace simgpu
