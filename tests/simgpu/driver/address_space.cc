#include "tests/simgpu/driver/address_space.h"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

namespace simgpu {
namespace {

constexpr Bytes kMostBytes = Bytes{32} << 40;
constexpr Bytes kLeastBytes = Bytes{1} << 30;
constexpr std::size_t kMostStories = 65536;

Address RoundUp(Address address, Bytes alignment) {
  return (address + alignment - 1) & ~(alignment - 1);
}

}  // namespace

AddressSpace::AddressSpace() {
  // Sanitizers and limits leave a process less than the 128 TiB it usually has.
  for (bytes_ = kMostBytes; bytes_ >= kLeastBytes; bytes_ /= 2) {
    void* const area =
        mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (area == MAP_FAILED) continue;
    madvise(area, bytes_, MADV_DONTDUMP);
    base_ = cursor_ = reinterpret_cast<Address>(area);
    return;
  }
  bytes_ = 0;
}

AddressSpace::~AddressSpace() {
  if (bytes_ != 0) munmap(reinterpret_cast<void*>(base_), bytes_);
}

Address AddressSpace::FirstGap(Address from, Address to, Bytes bytes, Bytes alignment) {
  Address begin = RoundUp(from, alignment);
  for (auto next = taken_.From(begin); begin <= to && to - begin >= bytes; ++next) {
    if (next == taken_.end() || next->first >= begin + bytes) return begin;
    begin = std::max(begin, RoundUp(next->first + next->second.bytes, alignment));
  }
  return 0;
}

Address AddressSpace::Take(Bytes bytes, Bytes alignment) {
  if (bytes == 0 || bytes > bytes_) return 0;
  const Address end = base_ + bytes_;
  Address found = FirstGap(cursor_, end, bytes, alignment);
  if (found == 0) found = FirstGap(base_, end, bytes, alignment);
  if (found == 0) return 0;
  taken_.Insert(found, bytes, 0);
  cursor_ = found + bytes;
  Forget(found, bytes);
  return found;
}

void AddressSpace::Forget(Address address, Bytes bytes) {
  auto old = freed_.From(address);
  while (old != freed_.end() && old->first < address + bytes) old = freed_.Erase(old);
}

void AddressSpace::Give(Address address, std::string story) {
  const auto taken = taken_.Exactly(address);
  freed_.Insert(address, taken->second.bytes, std::move(story));
  taken_.Erase(taken);
  freed_order_.push_back(address);
  if (freed_order_.size() <= kMostStories) return;
  const auto oldest = freed_.Exactly(freed_order_.front());
  if (oldest != freed_.end()) freed_.Erase(oldest);
  freed_order_.pop_front();
}

std::string AddressSpace::StoryOf(Address address) {
  const auto freed = freed_.Holding(address);
  return freed == freed_.end() ? std::string() : freed->second.value;
}

}  // namespace simgpu
