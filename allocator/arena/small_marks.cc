#include "allocator/arena/small_marks.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "allocator/stitch/block.h"

namespace thimble {

absl::StatusOr<std::unique_ptr<SmallMarks>> SmallMarks::Create(Bytes capacity, Bytes slot_bytes) {
  const Bytes units = capacity / kUnit;
  const Bytes slots = capacity / slot_bytes;
  const Bytes bytes = units + slots;
  void* const cells = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (cells == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no ", FormatBytes(bytes),
                     " of addresses for the table of small blocks: ", std::strerror(errno)));
  }
  return std::unique_ptr<SmallMarks>(
      new SmallMarks(static_cast<Cell*>(cells), units, slots, __builtin_ctzll(slot_bytes)));
}

SmallMarks::~SmallMarks() { munmap(cells_, bytes_); }

SmallMarks::Cell& SmallMarks::Of(Bytes offset) const { return cells_[offset / kUnit]; }

}  // namespace thimble
