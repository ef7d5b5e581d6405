// Host memory that the driver knows: allocated pinned, or registered by the program.
#pragma once

#include <mutex>

#include "tests/simgpu/driver/call.h"
#include "tests/simgpu/driver/range_map.h"

namespace simgpu {

enum class HostKind { kPinned, kRegistered };

struct HostBlock {
  HostKind kind = HostKind::kPinned;
  int device = 0;
  unsigned flags = 0;
};

class HostMemory {
 public:
  Outcome Allocate(Bytes bytes, const HostBlock& block, Address* address);
  Outcome Free(HostKind kind, Address address);
  Outcome Register(Address address, Bytes bytes, const HostBlock& block);
  Outcome Unregister(Address address);

  bool Find(Address address, HostBlock* block, Address* begin, Bytes* bytes);
  bool Knows(Address address);

 private:
  std::mutex mutex_;
  RangeMap<HostBlock> blocks_;
};

}  // namespace simgpu
