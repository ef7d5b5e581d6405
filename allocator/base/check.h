// THIMBLE_CHECK guards what only a bug in Thimble can break: a numbered invariant, never input or
// an answer of the driver. It names the invariant and stops the process before a byte is lost.
#pragma once

namespace thimble {

// Whether this is a debug build (--config=debug, asan), which checks invariants after every
// operation.
#ifdef THIMBLE_DEBUG
inline constexpr bool kIsDebugBuild = true;
#else
inline constexpr bool kIsDebugBuild = false;
#endif

// Writes "file:line: what" to stderr and aborts.
[[noreturn]] void CheckFailed(const char* file, int line, const char* what);

}  // namespace thimble

#define THIMBLE_CHECK(condition, what)                                      \
  do {                                                                      \
    if (__builtin_expect(!(condition), 0)) {                                \
      ::thimble::CheckFailed(__FILE__, __LINE__, what " (" #condition ")"); \
    }                                                                       \
  } while (false)
