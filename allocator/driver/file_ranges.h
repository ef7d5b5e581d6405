// Which parts of the host driver's file belong to chunks. Always hands out the lowest range that is
// large enough, so chunks made one after another lie one after another: mapped next to each other
// they become one area of the kernel.
//
// Invariants (CheckInvariants):
//   F1  Free ranges are not empty, do not touch each other and end before end().
//   F2  Every byte below end() is either free or taken: taken_bytes() + free = end().
//
// Not thread-safe: HostDriver holds its lock around every call.
#pragma once

#include <map>

#include "allocator/base/bytes.h"

namespace thimble {

class FileRanges {
 public:
  // The offset of `bytes` (positive) that were free. Never fails: the file is sparse and has no end
  // that first fit could reach while HostDriver limits what is taken. Costs one step per free range
  // that lies lower and is too small.
  Bytes Take(Bytes bytes);

  // Gives back exactly one range that Take returned.
  void Give(Bytes offset, Bytes bytes);

  Bytes taken_bytes() const { return taken_bytes_; }
  Bytes end() const { return end_; }  // no taken range reaches beyond
  void CheckInvariants() const;

 private:
  std::map<Bytes, Bytes> free_;  // offset -> bytes (F1)
  Bytes end_ = 0;
  Bytes taken_bytes_ = 0;
};

}  // namespace thimble
