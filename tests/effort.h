// How much of a long random test to run.
#pragma once

#include <cstdint>

namespace thimble {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kIsSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kIsSanitized =
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kIsSanitized = false;
#endif

// `count`, or a quarter of it under a sanitizer: each operation takes several times as long there,
// and the default build runs the same test in full.
constexpr std::uint64_t Effort(std::uint64_t count) {
  return kIsSanitized ? (count + 3) / 4 : count;
}

}  // namespace thimble
