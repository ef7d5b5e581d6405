// The input of swap planning: one step of training, which repeats forever.
//
//   op        0   1   2   3 | 4   5   6   7        ops run one after the other; with n of them, op
//   weights   x       x     | x       x            n + k is op k of the next step (here n = 4)
//   activation    x       x |     x       x        x: touches the block, so it must be there
//   batch             x     | x       x     |      allocated in one step and freed in the next
//
// A block may be on the host between two touches, and between its last touch and its end. All
// arithmetic is on 64-bit integers (products on 128) and cannot overflow within the limits below.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace thimble::schedule {

using Ns = std::int64_t;

inline constexpr std::int64_t kMaxBytes = std::int64_t{1} << 46;  // live at once
inline constexpr Ns kMaxStepNs = Ns{1} << 46;                     // 19 hours
inline constexpr std::size_t kMaxOps = std::size_t{1} << 20;
inline constexpr std::int64_t kLeastBytes = std::int64_t{1} << 20;  // smaller blocks never leave

struct Op {
  std::string name;
  std::int32_t occurrence = 0;  // number of earlier ops of this name in the step
  Ns ns = 0;
  std::int64_t live_bytes = 0;     // most allocated while it runs, if no block leaves
  std::int64_t waiting_bytes = 0;  // allocated before it requests memory
};

// A block, or a part of one that may leave alone. All ops that touch it are known.
struct Block {
  std::int64_t bytes = 0;
  std::int64_t offset = 0;            // of a part: from the block's first byte
  std::uint64_t key = 0;              // of its caller
  std::uint64_t id = 0;               // in the recording
  std::vector<std::int32_t> touches;  // ops, ascending; the first is below n, all are below 2n
  bool is_cyclic = false;             // lives through every step: touched again at touches[0] + n
  std::int32_t dies = kLives;         // the op before which it is freed, if known
  static constexpr std::int32_t kLives = -1;
};

// Bytes per second. 0: unknown.
struct Bus {
  std::int64_t out = 0;
  std::int64_t in = 0;
};

struct Problem {
  std::vector<Op> ops;
  std::vector<Block> blocks;
  Bus measured;  // while the step was recorded
};

// A problem must pass this check before planning. The error names the first wrong value.
[[nodiscard]] absl::Status CheckProblem(const Problem& problem);

Ns StepNs(const Problem& problem);
std::int64_t PeakBytes(const Problem& problem);

}  // namespace thimble::schedule
