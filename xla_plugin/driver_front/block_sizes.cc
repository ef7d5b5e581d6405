#include "xla_plugin/driver_front/block_sizes.h"

#include <sys/mman.h>

namespace thimble::xla {

std::unique_ptr<BlockSizes> BlockSizes::Create(const thimble_addresses& addresses) {
  const std::size_t count = (addresses.home_bytes + addresses.alias_bytes) / kUnit;
  void* const cells = mmap(nullptr, count, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (cells == MAP_FAILED) return nullptr;
  madvise(cells, count, MADV_NOHUGEPAGE);  // each page has a few bytes in use
  return std::unique_ptr<BlockSizes>(new BlockSizes(addresses, static_cast<Cell*>(cells), count));
}

BlockSizes::~BlockSizes() { munmap(cells_, count_); }

}  // namespace thimble::xla
