// Predicts when a block will be used again, from earlier steps.
//
// Training repeats itself. If the second block of an op was used again or freed so many ops later
// in the last step, it probably will be in this step. A use is identified by the op, its occurrence
// within the step, and the index among the op's blocks. Its position in the step does not count:
// TensorFlow changes the order of ops from step to step.
//
// Time is counted in ops. The table knows at most kMaxUses uses (some 100 MiB if every op came
// once); further ones are unknown.
//
// Not thread-safe: the owning Arena holds its mutex (LockRank::kArena) around every call.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "allocator/base/ids.h"

namespace thimble {

// When an op began. Two of them are a number of ops apart.
using OpTime = Position<struct OpLine>;

class NextUse {
 public:
  using Use = std::uint32_t;
  static constexpr Use kUnknown = ~Use{0};
  static constexpr Use kMaxUses = 1 << 20;

  // Begins an op that uses `count` blocks. Returns its first use; the others follow it. kUnknown if
  // the table is full or the op is unknown. `op` and `step` are 0 if unknown.
  Use BeginOp(std::uint64_t op, std::uint64_t step, std::uint32_t count);

  // The block whose last use was `use` at `then` is used again or freed now.
  void Learn(Use use, OpTime then) {
    if (now_ - then > longest_gap_) longest_gap_ = now_ - then;
    if (use != kUnknown) gaps_[use] = static_cast<std::uint32_t>(now_ - then);
  }
  // Predicts the next use of the block whose last use was `use` at `then`. If that is unknown, or
  // the prediction has passed, it expects as long a time again as since `then`.
  OpTime Guess(Use use, OpTime then) const {
    const OpTime guess = use == kUnknown ? OpTime() : then + gaps_[use];
    return guess > now_ ? guess : now_ + (now_ - then) + 1;
  }
  OpTime now() const { return now_; }
  // The longest time between two uses since the last call. Some blocks are used once or twice per
  // step, so it is about one step.
  std::uint64_t TakeLongestGap() { return std::exchange(longest_gap_, 0); }

 private:
  struct Op {
    std::uint64_t step = 0;
    std::uint32_t occurrence = 0;  // number of earlier ones in `step`
    struct Uses {
      Use first = kUnknown;
      std::uint32_t count = 0;
    };
    std::vector<Uses> uses;  // by occurrence
  };

  absl::flat_hash_map<std::uint64_t, Op> ops_;
  std::vector<std::uint32_t> gaps_;  // by use: ops until the next one; 0: unknown
  OpTime now_;
  std::uint64_t longest_gap_ = 0;
};

}  // namespace thimble
