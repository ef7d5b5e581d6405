#include "allocator/arena/small_marks.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "allocator/stitch/block.h"

namespace thimble {

absl::StatusOr<std::unique_ptr<SmallMarks>> SmallMarks::Create(Bytes capacity) {
  const Bytes bytes = capacity / kUnit;
  void* const cells = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (cells == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no ", FormatBytes(bytes),
                     " of addresses for the table of small blocks: ", std::strerror(errno)));
  }
  return std::unique_ptr<SmallMarks>(new SmallMarks(static_cast<Cell*>(cells), bytes));
}

SmallMarks::~SmallMarks() { munmap(cells_, bytes_); }

SmallMarks::Cell& SmallMarks::Of(Bytes offset) const { return cells_[offset / kUnit]; }

}  // namespace thimble
