#include "xla_plugin/driver_front/block_table.h"

#include <mutex>

namespace thimble::xla {

void BlockTable::Add(const HeldBlock& block) {
  const std::unique_lock lock(mutex_);
  blocks_.emplace(block.address, block);
}

std::optional<HeldBlock> BlockTable::Take(CUdeviceptr address) {
  const std::unique_lock lock(mutex_);
  const auto it = blocks_.find(address);
  if (it == blocks_.end()) return std::nullopt;
  const HeldBlock block = it->second;
  blocks_.erase(it);
  return block;
}

std::optional<HeldBlock> BlockTable::Find(CUdeviceptr inside) const {
  const std::shared_lock lock(mutex_);
  auto it = blocks_.upper_bound(inside);
  if (it == blocks_.begin()) return std::nullopt;
  --it;
  if (inside - it->first >= it->second.bytes) return std::nullopt;
  return it->second;
}

}  // namespace thimble::xla
