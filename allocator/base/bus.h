// Bandwidth to the host and back, assumed where it was not measured.
#pragma once

#include <cstdint>

namespace thimble {

// PCIe 3.0 x16, as AutoSwap measured it.
inline constexpr std::int64_t kOutBytesPerSecond = 13200000000;
inline constexpr std::int64_t kInBytesPerSecond = 12200000000;

}  // namespace thimble
