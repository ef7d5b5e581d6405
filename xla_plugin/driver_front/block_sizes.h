// The addresses that an arena has reserved, and the requested size of each block there. The arena
// rounds sizes up, but a program that queries the driver expects the size that it requested.
//
// There is one byte per kUnit of addresses: for a block that begins there, how many bytes its last
// unit lacks. The row costs memory only where blocks begin whose sizes are not multiples of kUnit,
// at most one page per MiB of addresses. An entry is valid from Set() until the block is freed.
//
// Thread-safe, without a lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "allocator/thimble.h"
#include "xla_plugin/driver_front/cuda_abi.h"

namespace thimble::xla {

class BlockSizes {
 public:
  static constexpr std::size_t kUnit = 256;  // blocks begin at multiples of it

  // Returns nullptr if the system has no addresses for the row.
  static std::unique_ptr<BlockSizes> Create(const thimble_addresses& addresses);
  ~BlockSizes();
  BlockSizes(const BlockSizes&) = delete;
  BlockSizes& operator=(const BlockSizes&) = delete;

  // Whether the address is the arena's, in a block or not.
  bool Contains(CUdeviceptr address) const {
    return address - home_ < home_bytes_ || address - alias_ < alias_bytes_;
  }

  // Records that the block at `address`, which the arena contains, was requested with `bytes`.
  void Set(CUdeviceptr address, std::size_t bytes) {
    const auto missing = static_cast<std::uint8_t>(-bytes % kUnit);
    Cell& cell = At(address);
    // Reading a zero page costs no memory.
    if (cell.load(std::memory_order_relaxed) != missing) {
      cell.store(missing, std::memory_order_relaxed);
    }
  }

  // The requested size of the block at `address`, which the arena rounded up to `rounded` bytes.
  std::size_t Get(CUdeviceptr address, std::size_t rounded) const {
    return rounded - At(address).load(std::memory_order_relaxed);
  }

 private:
  using Cell = std::atomic<std::uint8_t>;
  static_assert(sizeof(Cell) == 1 && Cell::is_always_lock_free, "zero pages must be valid cells");

  BlockSizes(const thimble_addresses& addresses, Cell* cells, std::size_t count)
      : home_(addresses.home),
        home_bytes_(addresses.home_bytes),
        alias_(addresses.alias),
        alias_bytes_(addresses.alias_bytes),
        cells_(cells),
        count_(count) {}

  Cell& At(CUdeviceptr address) const {
    const CUdeviceptr offset = address - home_;
    return offset < home_bytes_ ? cells_[offset / kUnit]
                                : cells_[(home_bytes_ + (address - alias_)) / kUnit];
  }

  const CUdeviceptr home_;
  const std::size_t home_bytes_;
  const CUdeviceptr alias_;
  const std::size_t alias_bytes_;
  Cell* const cells_;  // of the home addresses, then of the aliases
  const std::size_t count_;
};

}  // namespace thimble::xla
