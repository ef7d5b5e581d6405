// The other form of the problem: it lists, pair by pair, which buffers may not share bytes. A
// recording of several steps knows that, but no common time: which buffers were ever live together.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"

namespace thimble::plan {

inline constexpr std::int64_t kNotFixed = -1;
inline constexpr std::int32_t kMaxSlots = std::int32_t{1} << 14;  // 32 MiB of conflicts

// A symmetric relation as rows of bits: count^2 / 8 bytes.
class Conflicts {
 public:
  Conflicts() = default;
  explicit Conflicts(std::int32_t count)
      : words_per_row_((static_cast<std::size_t>(count) + 63) / 64),
        words_(words_per_row_ * static_cast<std::size_t>(count)) {}

  // a != b
  void Add(std::int32_t a, std::int32_t b) {
    SetBit(a, b);
    SetBit(b, a);
  }
  bool Has(std::int32_t a, std::int32_t b) const { return ((Row(a)[b / 64] >> (b % 64)) & 1) != 0; }

  // Bit b of the row (word b / 64, bit b % 64) says whether a and b conflict.
  const std::uint64_t* Row(std::int32_t a) const { return &words_[a * words_per_row_]; }
  std::size_t words_per_row() const { return words_per_row_; }

 private:
  void SetBit(std::int32_t a, std::int32_t b) {
    words_[a * words_per_row_ + b / 64] |= std::uint64_t{1} << (b % 64);
  }

  std::size_t words_per_row_ = 0;
  std::vector<std::uint64_t> words_;
};

struct ConflictProblem {
  std::vector<std::int64_t> sizes;  // positive multiples of `alignment`
  std::vector<std::int64_t> fixed;  // by buffer: the offset at which it must stay, or kNotFixed;
                                    // empty if none is fixed
  Conflicts conflicts;
  std::int64_t alignment = 256;  // of all offsets
  std::int64_t lower_bound = 0;  // no packing is lower; such as the most bytes live at once
};

// A problem must pass this check before it is solved: at most kMaxSlots buffers, sizes within the
// limits of problem.h, sizes and fixed offsets aligned, no overlap of fixed buffers that conflict.
// The error names the first wrong buffer by its index.
[[nodiscard]] absl::Status CheckConflictProblem(const ConflictProblem& problem);

}  // namespace thimble::plan
