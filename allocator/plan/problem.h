// The problem of offline planning: lay out buffers with known sizes and lifetimes in one address
// range, as low as possible. (Dynamic storage allocation; NP-hard.)
//
//   offset
//     ^   +-------+
//     |   |   1   +---+      two buffers may share bytes only if their
//     |   +---+---+ 2 |      lifetimes do not meet; height is the top
//     |   | 0 |   +---+      of the highest one
//     +---+---+---+---+--> time
//
// All arithmetic is on 64-bit integers and cannot overflow within the limits below.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"

namespace thimble::plan {

inline constexpr std::int64_t kMaxSize = std::int64_t{1} << 46;       // of one buffer
inline constexpr std::int64_t kMaxTotalSize = std::int64_t{1} << 60;  // of all together
inline constexpr std::size_t kMaxBuffers = std::size_t{1} << 20;

// Live from `lower` until `upper` (excluded).
struct Buffer {
  std::int64_t lower = 0;
  std::int64_t upper = 0;  // > lower
  std::int64_t size = 0;   // positive
};

struct Problem {
  std::vector<Buffer> buffers;
};

// The offset of each buffer, in the order of the problem.
struct Plan {
  std::vector<std::int64_t> offsets;
  std::int64_t height = 0;       // the largest offset + size
  std::int64_t lower_bound = 0;  // no plan is lower than this
};

// A problem must pass this check before it is solved. The error names the first wrong buffer by its
// index.
[[nodiscard]] absl::Status CheckProblem(const Problem& problem);

// The most bytes live at once.
std::int64_t MaxLive(const Problem& problem);

}  // namespace thimble::plan
