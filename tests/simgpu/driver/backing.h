// The bytes behind device memory: sparse host memory that costs nothing until it is written, and
// that only the simulator's copies reach.
//
// Not thread-safe: Memory holds its lock.
#pragma once

#include "tests/simgpu/driver/range_map.h"

namespace simgpu {

class Backing {
 public:
  Backing();
  ~Backing();
  Backing(const Backing&) = delete;
  Backing& operator=(const Backing&) = delete;

  // Zeros. Null if there is no room.
  char* Take(Bytes bytes);
  void Give(char* bytes, Bytes size);

 private:
  char* base_ = nullptr;
  Bytes bytes_ = 0;
  std::map<Bytes, Bytes> free_;  // offset -> size; neighbours are merged
};

// Makes [begin, begin + bytes) zeros, whole pages by giving them back to the system.
void ClearSparsely(char* begin, Bytes bytes);

}  // namespace simgpu
