// Where a pool's blocks lie in the memory it took from its device: a line of offsets that grows at
// its end and from which whole segments can be given back.
//
// Modelled on what is publicly known of CUDA's pools. They take multiples of 32 MiB, and they
// fragment: a user of an 80 GB GPU reported a pool that held 84,490,059,776 bytes (2,518 segments
// of 32 MiB), had 53,514,136,688 of them in use and could not serve 132,870,728 (rapidsai/rmm issue
// 1245). How they choose among free ranges is not known. Here it is best fit, and a device that has
// less than a segment left gives what it has, both in the pool's favour.
//
// Not thread-safe: Pools holds its lock.
#pragma once

#include <map>

#include "tests/simgpu/driver/options.h"

namespace simgpu {

class PoolLine {
 public:
  static constexpr Bytes kSegment = Bytes{32} << 20;

  // Takes `bytes` from the smallest free range that has them. False if none has.
  bool Take(Bytes bytes, Bytes* offset);
  void Give(Bytes offset, Bytes bytes);

  // The bytes that the end of the line lacks for a block of `bytes` for which no free range has
  // room.
  Bytes MissingAtEnd(Bytes bytes) const;
  void Grow(Bytes bytes);
  // Removes completely free segments, the last ones first, up to `most` bytes in total. Returns
  // their total size.
  Bytes Shrink(Bytes most);

 private:
  std::map<Bytes, Bytes> free_;  // offset, bytes; neighbours are joined
  std::map<Bytes, Bytes> segments_;
  Bytes end_ = 0;  // of all segments there ever were
};

}  // namespace simgpu
