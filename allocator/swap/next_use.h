// When a block will be used again, judged by the steps before.
//
// Training repeats itself: what an op did with its second block in the last step, and how many ops
// later that block was used again or freed, is a good guess for this step. A use is known by who
// uses (the op and how often it came before in its step) and as which of its blocks, not by its
// position in a step: TensorFlow changes the order of ops from step to step.
//
// Time is counted in ops. At most kMaxUses uses of as many ops are known, some 100 MiB if every op
// came once; further ones are unknown.
//
// Not thread-safe: the owning Arena holds its mutex (LockRank::kArena) around every call.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "allocator/base/ids.h"

namespace thimble {

// When an op began. What lies between two of them is a number of ops.
using OpTime = Position<struct OpLine>;

class NextUse {
 public:
  using Use = std::uint32_t;
  static constexpr Use kUnknown = ~Use{0};
  static constexpr Use kMaxUses = 1 << 20;

  // An op begins that uses `count` blocks. The uses are numbered from the one that is returned;
  // kUnknown if they cannot be. `op` is 0 if it is not known, `step` too.
  Use BeginOp(std::uint64_t op, std::uint64_t step, std::uint32_t count);

  // A block whose last use was `use` at `then` is used again, or freed, now.
  void Learn(Use use, OpTime then) {
    if (now_ - then > longest_gap_) longest_gap_ = now_ - then;
    if (use != kUnknown) gaps_[use] = static_cast<std::uint32_t>(now_ - then);
  }
  // When a block will be used again whose last use was `use` at `then`. What is not known, or was
  // wrong, is expected to take as long again as it has taken so far.
  OpTime Guess(Use use, OpTime then) const {
    const OpTime guess = use == kUnknown ? OpTime() : then + gaps_[use];
    return guess > now_ ? guess : now_ + (now_ - then) + 1;
  }
  OpTime now() const { return now_; }
  // The longest time between two uses since it was asked last: some blocks are used once or twice
  // per step, so it is about a step.
  std::uint64_t TakeLongestGap() { return std::exchange(longest_gap_, 0); }

 private:
  struct Op {
    std::uint64_t step = 0;
    std::uint32_t occurrence = 0;  // how often it came in `step`
    struct Uses {
      Use first = kUnknown;
      std::uint32_t count = 0;
    };
    std::vector<Uses> uses;  // by occurrence
  };

  absl::flat_hash_map<std::uint64_t, Op> ops_;
  std::vector<std::uint32_t> gaps_;  // by use: ops until the next one; 0: not known
  OpTime now_;
  std::uint64_t longest_gap_ = 0;
};

}  // namespace thimble
