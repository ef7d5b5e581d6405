// The parameters of one seed of the model test: its arena and the sizes it requests.
#pragma once

#include <cstdint>
#include <ostream>
#include <vector>

#include "allocator/arena/options.h"
#include "allocator/base/bytes.h"
#include "tests/workloads/random.h"

namespace thimble {

enum class Sizes : std::uint8_t {
  kTiny,     // up to a page: slabs and magazines
  kUniform,  // up to four chunks
  kLog,      // every power of two up to a quarter of the limit
  kChunky,   // whole chunks, and one unit more or less
  kPalette,  // the same few sizes again and again, as in training
};
inline constexpr int kSizesCount = 5;

struct Plan {
  std::uint64_t seed = 0;
  ArenaOptions arena;
  Bytes device_bytes = 0;
  Bytes taken_bytes = 0;  // of the device, by another user
  std::uint64_t streams = 1;
  bool hold_streams = false;
  Sizes sizes = Sizes::kLog;
};

// All options, chunk sizes and size distributions appear among any 16 seeds in a row.
Plan MakePlan(std::uint64_t seed);
std::ostream& operator<<(std::ostream& out, const Plan& plan);

class SizeDraw {
 public:
  SizeDraw(const Plan& plan, workloads::Random* random);

  Bytes Next();

 private:
  static constexpr std::size_t kPaletteSizes = 24;
  static constexpr std::uint64_t kPaletteLife = 20'000;  // draws

  const Bytes chunk_bytes_;
  const Bytes largest_;
  const Sizes sizes_;
  workloads::Random* const random_;
  std::vector<Bytes> palette_;
  std::uint64_t draws_ = 0;
};

}  // namespace thimble
