// One allocation policy under measurement. Standard types only: the file that wraps TensorFlow's
// allocator sees TensorFlow's Abseil and must not meet ours.
#pragma once

#include <cstdint>

namespace thimble::bench {

class Policy {
 public:
  virtual ~Policy() = default;

  // The address of a block of `bytes` > 0, or 0 when the policy is out of memory. After that it may
  // only be destroyed.
  virtual std::uint64_t Allocate(std::uint64_t bytes, std::uint64_t stream, std::uint64_t key) = 0;

  // `address` came from Allocate and was not freed since. `stream` used the block.
  virtual void Free(std::uint64_t address, std::uint64_t stream) = 0;

  // A step of training begins. Most policies ignore this.
  virtual void BeginStep() {}
};

}  // namespace thimble::bench
