#include "tests/simgpu/driver/backing.h"

#include <sys/mman.h>

#include <cstring>
#include <iterator>

namespace simgpu {
namespace {

constexpr Bytes kMostBytes = Bytes{32} << 40;
constexpr Bytes kLeastBytes = Bytes{1} << 30;
constexpr Bytes kPage = 4096;

Bytes WholePages(Bytes bytes) { return (bytes + kPage - 1) / kPage * kPage; }

}  // namespace

Backing::Backing() {
  for (bytes_ = kMostBytes; bytes_ >= kLeastBytes; bytes_ /= 2) {
    void* const area = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (area == MAP_FAILED) continue;
    // A huge page would turn a write of four bytes into two megabytes.
    madvise(area, bytes_, MADV_NOHUGEPAGE);
    madvise(area, bytes_, MADV_DONTDUMP);
    base_ = static_cast<char*>(area);
    free_.emplace(0, bytes_);
    return;
  }
  bytes_ = 0;
}

Backing::~Backing() {
  if (base_ != nullptr) munmap(base_, bytes_);
}

char* Backing::Take(Bytes bytes) {
  const Bytes size = WholePages(bytes);
  for (auto range = free_.begin(); range != free_.end(); ++range) {
    if (range->second < size) continue;
    const auto [offset, available] = *range;
    free_.erase(range);
    if (available > size) free_.emplace(offset + size, available - size);
    return base_ + offset;
  }
  return nullptr;
}

void Backing::Give(char* bytes, Bytes size) {
  size = WholePages(size);
  madvise(bytes, size, MADV_DONTNEED);
  Bytes offset = static_cast<Bytes>(bytes - base_);
  const auto next = free_.lower_bound(offset);
  if (next != free_.end() && next->first == offset + size) {
    size += next->second;
    free_.erase(next);
  }
  const auto behind = free_.lower_bound(offset);
  if (behind != free_.begin()) {
    const auto before = std::prev(behind);
    if (before->first + before->second == offset) {
      before->second += size;
      return;
    }
  }
  free_.emplace(offset, size);
}

void ClearSparsely(char* begin, Bytes bytes) {
  constexpr Bytes kWorthACall = 16 * kPage;
  if (bytes < kWorthACall) {
    std::memset(begin, 0, bytes);
    return;
  }
  const auto address = reinterpret_cast<Address>(begin);
  const Bytes head = WholePages(address) - address;
  const Bytes pages = (bytes - head) / kPage * kPage;
  std::memset(begin, 0, head);
  madvise(begin + head, pages, MADV_DONTNEED);
  std::memset(begin + head + pages, 0, bytes - head - pages);
}

}  // namespace simgpu
