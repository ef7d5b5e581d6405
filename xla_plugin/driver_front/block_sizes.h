// The addresses that an arena has reserved, and how much was asked for of each block there. The
// arena rounds sizes up; whoever asks the driver for a range wants to see their own.
//
// One byte per kUnit of addresses: how much less than its last unit the block that begins there
// has. The row costs memory only where blocks begin whose sizes are no multiples of kUnit, at most
// one page per MiB of addresses. An entry is true from Set() until the block is freed.
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

  // nullptr if the system has no addresses for the row.
  static std::unique_ptr<BlockSizes> Create(const thimble_addresses& addresses);
  ~BlockSizes();
  BlockSizes(const BlockSizes&) = delete;
  BlockSizes& operator=(const BlockSizes&) = delete;

  // Whether it is the arena's, block or not: then it is nobody else's.
  bool Contains(CUdeviceptr address) const {
    return address - home_ < home_bytes_ || address - alias_ < alias_bytes_;
  }

  // `bytes` were asked for of the block at `address`, which the arena contains.
  void Set(CUdeviceptr address, std::size_t bytes) {
    const auto missing = static_cast<std::uint8_t>(-bytes % kUnit);
    Cell& cell = At(address);
    // To look costs no memory.
    if (cell.load(std::memory_order_relaxed) != missing) {
      cell.store(missing, std::memory_order_relaxed);
    }
  }

  // What was asked for of the block at `address`, of which the arena has made `rounded` bytes.
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
