// The half of Memory that serves the virtual memory calls, and keeps their rules.
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "tests/simgpu/driver/memory.h"

namespace simgpu {
namespace {

std::uint64_t InodeOf(int descriptor) {
  struct stat info {};
  return fstat(descriptor, &info) == 0 ? info.st_ino : 0;
}

bool IsClosedByAll(int read_end) {
  pollfd end = {read_end, 0, 0};
  return poll(&end, 1, 0) == 1 && (end.revents & POLLHUP) != 0;
}

Outcome Broken(const char* rule, const std::string& why) {
  return Illegal(CUDA_ERROR_INVALID_VALUE, why + " (rule " + rule + ")");
}

}  // namespace

Outcome Memory::Reserve(Bytes bytes, Bytes alignment, Address* address) {
  if (bytes == 0 || !IsMultiple(bytes)) {
    return Broken("R5", "size " + std::to_string(bytes) + " is not a positive multiple of " +
                            std::to_string(granularity_));
  }
  if ((alignment & (alignment - 1)) != 0) {
    return Broken("R5", "alignment " + std::to_string(alignment) + " is not a power of two");
  }
  std::lock_guard<std::mutex> lock(mutex_);
  if (loose_ != 0) {
    *address = std::exchange(loose_, 0);
    return Success();
  }
  const Address begin = addresses_.Take(bytes, std::max(alignment, granularity_));
  if (begin == 0) return Failure(CUDA_ERROR_OUT_OF_MEMORY);
  reservations_.Insert(begin, bytes, 0);
  *address = begin;
  return Success();
}

Outcome Memory::Release(Address address, Bytes bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = reservations_.Exactly(address);
  if (found == reservations_.end() || found->second.bytes != bytes) {
    return Broken("R6", Hex(address) + " with " + std::to_string(bytes) +
                            " bytes is not what cuMemAddressReserve gave: it is " +
                            Describe(address));
  }
  if (segments_.Overlaps(address, bytes)) {
    return Broken("R6", "memory is still mapped at " + Hex(segments_.From(address)->first));
  }
  for (auto old = unmapped_.From(address);
       old != unmapped_.end() && old->first < address + bytes;) {
    old = unmapped_.Erase(old);
  }
  reservations_.Erase(found);
  addresses_.Give(address,
                  std::to_string(bytes) +
                      " bytes of cuMemAddressReserve, freed by cuMemAddressFree on thread " +
                      std::to_string(syscall(SYS_gettid)));
  return Success();
}

Outcome Memory::Create(const CUmemLocation& location, Bytes bytes, bool shareable,
                       CUmemGenericAllocationHandle* handle) {
  if (bytes == 0 || !IsMultiple(bytes)) {
    return Broken("R5", "size " + std::to_string(bytes) + " is not a positive multiple of " +
                            std::to_string(granularity_));
  }
  auto chunk = std::make_shared<Chunk>(
      Chunk{bytes, location, /*host=*/nullptr, shareable, /*references=*/1});
  const int payer = PayerOf(*chunk);
  if (!ChargeOrReclaim(payer, Kind::kVirtual, bytes)) return Failure(CUDA_ERROR_OUT_OF_MEMORY);
  std::lock_guard<std::mutex> lock(mutex_);
  chunk->host = backing_.Take(bytes);
  if (chunk->host == nullptr) {
    accounts_.Refund(payer, Kind::kVirtual, bytes);
    return Failure(CUDA_ERROR_OUT_OF_MEMORY);
  }
  *handle = next_handle_++;
  handles_.emplace(*handle, Handle{std::move(chunk), 1});
  ++chunks_;
  return Success();
}

// R7, R8: the bytes go with the last reference.
void Memory::Drop(const std::shared_ptr<Chunk>& chunk) {
  if (--chunk->references > 0) return;
  backing_.Give(chunk->host, chunk->bytes);
  accounts_.Refund(PayerOf(*chunk), Kind::kVirtual, chunk->bytes);
  --chunks_;
}

Outcome Memory::Destroy(CUmemGenericAllocationHandle handle) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = handles_.find(handle);
  if (found == handles_.end()) {
    return Illegal(CUDA_ERROR_INVALID_VALUE, "handle " + Hex(handle) + " is not alive");
  }
  if (--found->second.count > 0) return Success();
  const std::shared_ptr<Chunk> chunk = found->second.chunk;
  handles_.erase(found);
  if (defects_.Has(Defect::kEarly)) ClearSparsely(chunk->host, chunk->bytes);
  Drop(chunk);
  return Success();
}

std::shared_ptr<Chunk> Memory::FindChunk(CUmemGenericAllocationHandle handle) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = handles_.find(handle);
  return found == handles_.end() ? nullptr : found->second.chunk;
}

// A handle of the chunk that is alive gains a count; one that was destroyed while mapped comes back
// under a new number.
Outcome Memory::Retain(Address address, CUmemGenericAllocationHandle* handle) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto segment = segments_.Holding(address);
  if (segment == segments_.end() || segment->second.value.kind != Kind::kVirtual) {
    return Failure(CUDA_ERROR_INVALID_VALUE);  // programs ask this to find out
  }
  const std::shared_ptr<Chunk>& chunk = segment->second.value.chunk;
  for (auto& [number, one] : handles_) {
    if (one.chunk != chunk) continue;
    ++one.count;
    *handle = number;
    return Success();
  }
  ++chunk->references;
  *handle = next_handle_++;
  handles_.emplace(*handle, Handle{chunk, 1});
  return Success();
}

Outcome Memory::Map(Address address, Bytes bytes, Bytes offset,
                    CUmemGenericAllocationHandle handle) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = handles_.find(handle);
  if (found == handles_.end()) {
    return Illegal(CUDA_ERROR_INVALID_VALUE, "handle " + Hex(handle) + " is not alive");
  }
  const std::shared_ptr<Chunk>& chunk = found->second.chunk;
  if (offset != 0) return Broken("R1", "offset " + std::to_string(offset) + " is not zero");
  if (bytes != chunk->bytes) {
    return Broken("R1", "size " + std::to_string(bytes) + " is not that of the handle, " +
                            std::to_string(chunk->bytes));
  }
  if (!IsMultiple(address)) {
    return Broken("R5", Hex(address) + " is not a multiple of " + std::to_string(granularity_));
  }
  const auto reserved = reservations_.Holding(address);
  if (reserved == reservations_.end() ||
      reserved->first + reserved->second.bytes - address < bytes) {
    return Broken("R2", Hex(address) + " is not reserved for " + std::to_string(bytes) +
                            " bytes: it is " + Describe(address));
  }
  if (segments_.Overlaps(address, bytes)) {
    if (!defects_.Has(Defect::kOnto)) {
      return Broken("R2", "something is mapped at " + Hex(segments_.From(address)->first));
    }
    const auto covered = segments_.From(address);
    Drop(covered->second.value.chunk);
    segments_.Erase(covered);
  }
  Segment segment;
  const bool has_alias = chunk->references > 1;
  segment.host = has_alias && defects_.Has(Defect::kAlias) ? backing_.Take(bytes) : chunk->host;
  segment.device = chunk->owner();
  segment.kind = Kind::kVirtual;
  if (defects_.Has(Defect::kOpen)) segment.access = ~0u;
  segment.chunk = chunk;
  ++chunk->references;
  for (auto old = unmapped_.From(address);
       old != unmapped_.end() && old->first < address + bytes;) {
    old = unmapped_.Erase(old);
  }
  segments_.Insert(address, bytes, std::move(segment));
  return Success();
}

Outcome Memory::Unmap(Address address, Bytes bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = segments_.Exactly(address);
  if (found == segments_.end() || found->second.value.kind != Kind::kVirtual) {
    return Broken("R3",
                  Hex(address) + " is not where a mapping starts: it is " + Describe(address));
  }
  if (found->second.bytes != bytes && !defects_.Has(Defect::kPart)) {
    return Broken("R3", "size " + std::to_string(bytes) + " is not that of the mapping, " +
                            std::to_string(found->second.bytes));
  }
  const std::shared_ptr<Chunk> chunk = found->second.value.chunk;
  segments_.Erase(found);
  if (defects_.Has(Defect::kLoose)) loose_ = address;
  unmapped_.Insert(address, bytes,
                   std::to_string(bytes) + " bytes were unmapped by thread " +
                       std::to_string(syscall(SYS_gettid)));
  Drop(chunk);
  return Success();
}

Outcome Memory::SetAccess(Address address, Bytes bytes, std::uint32_t grant, std::uint32_t revoke,
                          std::size_t* mappings) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (bytes == 0 || !IsMultiple(bytes) || !IsMultiple(address)) {
    return Broken("R5", Hex(address) + " with " + std::to_string(bytes) +
                            " bytes is not made of whole granules");
  }
  std::vector<Segment*> covered;
  const Address end = address + bytes;
  if (end < address) return Broken("R4", std::to_string(bytes) + " bytes are not mapped");
  for (Address at = address; at < end;) {
    const auto found = segments_.Holding(at);
    if (found == segments_.end() || found->second.value.kind != Kind::kVirtual) {
      return Broken("R4", Hex(at) + " is not mapped: it is " + Describe(at));
    }
    covered.push_back(&found->second.value);
    at = found->first + found->second.bytes;
    if (found->first < address || at > end) {
      return Broken("R4", "a part of the mapping at " + Hex(found->first) + " is left out");
    }
  }
  if (defects_.Has(Defect::kFirst)) covered.resize(1);
  for (Segment* const segment : covered) segment->access = (segment->access & ~revoke) | grant;
  *mappings = covered.size();
  return Success();
}

Outcome Memory::Export(CUmemGenericAllocationHandle handle, int* descriptor) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = handles_.find(handle);
  if (found == handles_.end()) {
    return Illegal(CUDA_ERROR_INVALID_VALUE, "handle " + Hex(handle) + " is not alive");
  }
  if (!found->second.chunk->shareable) {
    return Illegal(CUDA_ERROR_INVALID_VALUE,
                   "handle " + Hex(handle) + " was not created for descriptors");
  }
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Failure(CUDA_ERROR_OPERATING_SYSTEM);
  ++found->second.chunk->references;
  exports_.push_back({ends[0], InodeOf(ends[0]), found->second.chunk});
  *descriptor = ends[1];
  return Success();
}

Outcome Memory::Import(int descriptor, CUmemGenericAllocationHandle* handle) {
  std::lock_guard<std::mutex> lock(mutex_);
  const std::uint64_t inode = InodeOf(descriptor);
  for (const Exported& one : exports_) {
    if (one.inode != inode) continue;
    ++one.chunk->references;
    *handle = next_handle_++;
    handles_.emplace(*handle, Handle{one.chunk, 1});
    return Success();
  }
  return Illegal(CUDA_ERROR_INVALID_VALUE,
                 "descriptor " + std::to_string(descriptor) + " was not exported by this process");
}

void Memory::SweepExports() {
  const auto is_open = [](const Exported& one) { return !IsClosedByAll(one.read_end); };
  const auto closed = std::partition(exports_.begin(), exports_.end(), is_open);
  for (auto one = closed; one != exports_.end(); ++one) {
    close(one->read_end);
    Drop(one->chunk);
  }
  exports_.erase(closed, exports_.end());
}

VirtualCounts Memory::CountVirtual() {
  std::lock_guard<std::mutex> lock(mutex_);
  SweepExports();
  VirtualCounts counts;
  counts.chunks = chunks_;
  counts.reservations = reservations_.size();
  for (const auto& [begin, entry] : segments_) {
    if (entry.value.kind == Kind::kVirtual) ++counts.mappings;
  }
  return counts;
}

}  // namespace simgpu
