// Random numbers that are the same for a seed on every machine; the standard library's
// distributions do not guarantee that.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>

#include "allocator/base/bytes.h"

namespace thimble::workloads {

class Random {
 public:
  explicit Random(std::uint64_t seed) : bits_(seed) {}

  // In [0, count).
  std::size_t Index(std::size_t count) { return bits_() % count; }

  // In [low, high).
  double Uniform(double low, double high) {
    constexpr double kUnit = 1.0 / (std::uint64_t{1} << 53);
    return low + (high - low) * static_cast<double>(bits_() >> 11) * kUnit;
  }

  // In [low, high), with every power of two equally likely.
  Bytes LogUniform(Bytes low, Bytes high) {
    return static_cast<Bytes>(
        std::exp(Uniform(std::log(static_cast<double>(low)), std::log(static_cast<double>(high)))));
  }

 private:
  std::mt19937_64 bits_;
};

}  // namespace thimble::workloads
