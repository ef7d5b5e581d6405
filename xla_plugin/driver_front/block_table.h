// Which addresses belong to an arena, and of which device: the driver is asked for all others.
//
// Thread-safe.
#pragma once

#include <map>
#include <optional>
#include <shared_mutex>

#include "xla_plugin/driver_front/cuda_abi.h"

namespace thimble::xla {

class Device;

struct HeldBlock {
  CUdeviceptr address = 0;
  std::size_t bytes = 0;  // as asked for
  Device* device = nullptr;
};

class BlockTable {
 public:
  // Throws std::bad_alloc, and then the block is not in the table.
  void Add(const HeldBlock& block);

  // Takes the block that begins at `address` out of the table, so that of two frees one fails.
  std::optional<HeldBlock> Take(CUdeviceptr address);

  // The block that `inside` points into.
  std::optional<HeldBlock> Find(CUdeviceptr inside) const;

 private:
  mutable std::shared_mutex mutex_;
  std::map<CUdeviceptr, HeldBlock> blocks_;
};

}  // namespace thimble::xla
