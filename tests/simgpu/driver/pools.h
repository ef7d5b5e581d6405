// Memory pools of the stream-ordered calls.
//
// A pool takes memory from the device if its cached memory is not enough, and gives back whole
// segments above its release threshold when the program waits for the device (pool_line.h). As
// everywhere in Memory, programs always see new addresses, so that the use of a freed block is
// detected; the line only decides what fits.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>

#include "cuda.h"
#include "tests/simgpu/driver/handles.h"
#include "tests/simgpu/driver/memory.h"
#include "tests/simgpu/driver/pool_line.h"

namespace simgpu {

struct Pool {
  int device = 0;
  CUmemoryPool handle = nullptr;
  std::uint32_t access = 0;   // bit d: device d may use its blocks
  bool is_default = false;    // of its device: cannot be destroyed
  bool is_destroyed = false;  // lives on until its last block is freed
  Bytes most = 0;             // 0: no bound of its own
  Bytes threshold = 0;
  Bytes used = 0;
  Bytes used_high = 0;
  Bytes reserved = 0;  // charged to the device
  Bytes reserved_high = 0;
  PoolLine line;
  std::unordered_map<Address, Bytes> offsets;  // of live blocks, on the line
  int follow_events = 1;
  int opportunistic = 1;
  int internal_dependencies = 1;
};

class Pools {
 public:
  Pools(const Options& options, Memory& memory);

  CUmemoryPool Create(int device, Bytes most);
  Outcome Destroy(CUmemoryPool handle);
  std::shared_ptr<Pool> Find(CUmemoryPool handle) const { return pools_.Find(handle); }

  CUmemoryPool Default(int device) const { return defaults_[static_cast<std::size_t>(device)]; }
  CUmemoryPool Current(int device);
  void SetCurrent(int device, CUmemoryPool handle);

  Outcome Allocate(CUmemoryPool handle, Bytes bytes, Address* address);
  Outcome Free(Address address, const char* by);

  void SetAccess(Pool& pool, std::uint32_t grant, std::uint32_t revoke);
  Outcome SetAttribute(Pool& pool, CUmemPool_attribute attribute, void* value);
  Outcome GetAttribute(Pool& pool, CUmemPool_attribute attribute, void* value);

  // Gives back what is cached above `keep`.
  void Trim(Pool& pool, Bytes keep);
  // The program waited for the device: every pool of it goes down to its threshold.
  void Waited(int device);

 private:
  void TrimLocked(Pool& pool, Bytes keep);
  // Makes room for `cost` bytes that the line does not have. False if the device has not enough.
  bool Grow(Pool& pool, Bytes cost);
  bool Charge(Pool& pool, Bytes bytes);
  void Reclaim(int device);

  const Bytes granularity_;
  Memory& memory_;
  std::mutex mutex_;
  std::vector<CUmemoryPool> defaults_;
  std::vector<CUmemoryPool> current_;
  HandleTable<CUmemoryPool, Pool> pools_;
  // Destroyed pools with blocks left; found by the blocks' handle.
  std::map<CUmemoryPool, std::shared_ptr<Pool>> dying_;
};

}  // namespace simgpu
