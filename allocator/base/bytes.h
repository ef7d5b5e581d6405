// Sizes in bytes: units, rounding, and conversion to and from text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace thimble {

using Bytes = std::uint64_t;

inline constexpr Bytes kKiB = 1024;
inline constexpr Bytes kMiB = 1024 * kKiB;
inline constexpr Bytes kGiB = 1024 * kMiB;
inline constexpr Bytes kTiB = 1024 * kGiB;

constexpr bool IsPowerOfTwo(Bytes x) { return x != 0 && (x & (x - 1)) == 0; }

// `unit` is positive; it need not be a power of two.
constexpr Bytes RoundDown(Bytes x, Bytes unit) { return x - x % unit; }

// Only for sizes known to be far below 2^64. Use CheckedRoundUp for sizes from outside.
constexpr Bytes RoundUp(Bytes x, Bytes unit) { return RoundDown(x + unit - 1, unit); }

// The same for a power of two: no division, for the hot paths.
constexpr Bytes AlignDown(Bytes x, Bytes power) { return x & ~(power - 1); }
constexpr Bytes AlignUp(Bytes x, Bytes power) { return AlignDown(x + power - 1, power); }
constexpr bool IsAligned(Bytes x, Bytes power) { return (x & (power - 1)) == 0; }

// nullopt if the result does not fit in 64 bits.
constexpr std::optional<Bytes> CheckedAdd(Bytes a, Bytes b) {
  const Bytes sum = a + b;
  if (sum < a) return std::nullopt;
  return sum;
}
constexpr std::optional<Bytes> CheckedRoundUp(Bytes x, Bytes unit) {
  const std::optional<Bytes> padded = CheckedAdd(x, unit - 1);
  if (!padded) return std::nullopt;
  return RoundDown(*padded, unit);
}

// For people: "0 B", "17 B", "1.50 MiB".
std::string FormatBytes(Bytes bytes);

// Reads "4096", "4096B", "512KiB", "8GiB", "1.5GiB" (K, M, G, T; with or without iB). Anything
// else, and a size above 2^63, is an error that quotes `text`.
absl::StatusOr<Bytes> ParseBytes(absl::string_view text);

}  // namespace thimble
