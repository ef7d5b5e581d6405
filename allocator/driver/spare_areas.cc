#include "allocator/driver/spare_areas.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>

namespace thimble {
namespace {

std::size_t PageBytes() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace

void SpareAreas::Refill() {
  if (full_) return;
  Spend();  // what a refusal left half-done
  void* const got = mmap(nullptr, kCount * PageBytes(), PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (got == MAP_FAILED) return;
  pages_ = static_cast<char*>(got);
  // Neighbours with different protections cannot share an area.
  for (int i = 1; i < kCount; i += 2) {
    if (mprotect(pages_ + i * PageBytes(), PageBytes(), PROT_READ) != 0) return;
  }
  full_ = true;
}

bool SpareAreas::Spend() {
  if (pages_ == nullptr) return false;
  munmap(pages_, kCount * PageBytes());
  pages_ = nullptr;
  full_ = false;
  return true;
}

}  // namespace thimble
