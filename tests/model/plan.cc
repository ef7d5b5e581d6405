#include "tests/model/plan.h"

#include <algorithm>
#include <array>

#include "allocator/stitch/block.h"
#include "tests/model/oracle.h"

namespace thimble {

Plan MakePlan(std::uint64_t seed) {
  constexpr std::array<Bytes, 5> kChunks = {4 * kKiB, 8 * kKiB, 16 * kKiB, 64 * kKiB, 32 * kKiB};
  // In chunks. The last one is large enough for large chunks, if preallocated; see growth.h.
  constexpr std::array<Bytes, 3> kLimits = {24, 60, 600};
  Plan plan;
  plan.seed = seed;
  plan.arena.chunk_bytes = kChunks[seed % kChunks.size()];
  constexpr Bytes kMost = 10 * kMiB;  // so that contents can be checked quickly
  const Bytes limit = plan.arena.chunk_bytes * kLimits[seed % kLimits.size()];
  plan.arena.limit = std::min(limit, kMost);
  plan.arena.preallocate = seed % 4 == 1;
  plan.arena.stitch = seed % 8 != 6;
  plan.arena.plan = seed % 4 >= 2;
  plan.arena.magazines = seed % 3 != 2;
  plan.device_bytes = plan.arena.limit;
  if (seed % 4 == 3) plan.taken_bytes = RoundDown(plan.arena.limit / 3, kPage);
  plan.streams = 1 + seed / 2 % 4;
  plan.hold_streams = plan.streams > 1 && seed % 3 != 0;
  plan.sizes = static_cast<Sizes>((seed + seed / 5) % kSizesCount);
  return plan;
}

std::ostream& operator<<(std::ostream& out, const Plan& plan) {
  return out << "seed " << plan.seed << ": chunk " << plan.arena.chunk_bytes << ", limit "
             << plan.arena.limit << ", taken " << plan.taken_bytes << ", preallocate "
             << plan.arena.preallocate << ", stitch " << plan.arena.stitch << ", plan "
             << plan.arena.plan << ", magazines " << plan.arena.magazines << ", streams "
             << plan.streams << ", hold " << plan.hold_streams << ", sizes "
             << static_cast<int>(plan.sizes);
}

SizeDraw::SizeDraw(const Plan& plan, workloads::Random* random)
    : chunk_bytes_(plan.arena.chunk_bytes),
      largest_(plan.arena.limit / 4),
      sizes_(plan.sizes),
      random_(random) {}

Bytes SizeDraw::Next() {
  switch (sizes_) {
    case Sizes::kTiny:
      return 1 + random_->Index(4096);
    case Sizes::kUniform:
      return 1 + random_->Index(4 * chunk_bytes_);
    case Sizes::kLog:
      return random_->LogUniform(1, largest_);
    case Sizes::kChunky: {
      const Bytes whole = chunk_bytes_ * (1 + random_->Index(5));
      return whole - kUnit + kUnit * random_->Index(3);
    }
    case Sizes::kPalette:
      break;
  }
  if (draws_++ % kPaletteLife == 0) {
    palette_.clear();
    for (std::size_t i = 0; i < kPaletteSizes; ++i) {
      palette_.push_back(random_->LogUniform(chunk_bytes_ / 8, largest_));
    }
  }
  return palette_[random_->Index(palette_.size())];
}

}  // namespace thimble
