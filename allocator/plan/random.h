// Random integers, the same for the same seed on every machine.
#pragma once

#include <cstdint>

namespace thimble::plan {

// SplitMix64.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t Bits() {
    state_ += 0x9E3779B97F4A7C15u;
    return Mix(state_);
  }

  // In [0, count). The bias is below 2^-32 for the counts used here.
  std::int64_t Below(std::int64_t count) {
    return static_cast<std::int64_t>(Bits() % static_cast<std::uint64_t>(count));
  }

  // True once in `count` calls.
  bool OneIn(std::int64_t count) { return Below(count) == 0; }

  static std::uint64_t Mix(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
  }

 private:
  std::uint64_t state_;
};

}  // namespace thimble::plan
