// The two clocks of the measurements.
#pragma once

#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#else
#include <chrono>
#endif

#include <cstdint>

namespace thimble::bench {

// Counts only this thread's time: a round is longer than a time slice, and other programs that run
// in between must not count.
inline double ThreadNanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// The cheapest clock, because reading it is part of every timed operation.
inline std::uint64_t Ticks() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

}  // namespace thimble::bench
