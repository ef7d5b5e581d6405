#include <algorithm>
#include <cstdint>
#include <vector>

#include "allocator/offline/plan/occupancy.h"
#include "allocator/plan/random.h"
#include "gtest/gtest.h"

namespace thimble::plan {
namespace {

constexpr std::int64_t kBytes = 64;
constexpr std::int64_t kNoRoom = kBytes * 4;  // a hole that never ends

// Every byte of every section, one flag each.
class Map {
 public:
  explicit Map(std::int32_t sections) : taken_(sections, std::vector<bool>(kNoRoom)) {}

  void Take(Span span, std::int64_t begin, std::int64_t end) {
    for (std::int32_t s = span.first; s < span.last; ++s) {
      for (std::int64_t at = begin; at < end; ++at) taken_[s][at] = true;
    }
  }
  bool IsFree(Span span, std::int64_t at) const {
    for (std::int32_t s = span.first; s < span.last; ++s) {
      if (taken_[s][at]) return false;
    }
    return true;
  }
  // Offsets of the holes of at least `size`, with their room.
  std::vector<std::pair<std::int64_t, std::int64_t>> Holes(Span span, std::int64_t size) const {
    std::vector<std::pair<std::int64_t, std::int64_t>> holes;
    for (std::int64_t at = 0; at < kNoRoom;) {
      if (!IsFree(span, at)) {
        ++at;
        continue;
      }
      const std::int64_t begin = at;
      while (at < kNoRoom && IsFree(span, at)) ++at;
      if (at - begin >= size) holes.emplace_back(begin, at - begin);
    }
    return holes;
  }

 private:
  std::vector<std::vector<bool>> taken_;
};

Span AnySpan(std::int32_t sections, Random& random) {
  const std::int32_t first = static_cast<std::int32_t>(random.Below(sections));
  return {first, first + 1 + static_cast<std::int32_t>(random.Below(sections - first))};
}

TEST(PlanOccupancy, FindsTheSamePlacesAsAMapOfEveryByte) {
  Random random(1);
  for (int round = 0; round < 400; ++round) {
    const std::int32_t sections = 1 + static_cast<std::int32_t>(random.Below(20));
    Occupancy occupancy(sections);
    Map map(sections);
    for (int step = 0; step < 40; ++step) {
      const Span span = AnySpan(sections, random);
      const std::int64_t size = 1 + random.Below(12);
      const auto holes = map.Holes(span, size);
      ASSERT_EQ(occupancy.FirstFit(span, size), holes.front().first);
      // The last hole has no end: it is taken only if it is the only one.
      const auto best =
          std::min_element(holes.begin(), holes.end(),
                           [](const auto& a, const auto& b) { return a.second < b.second; });
      ASSERT_LE(holes.size(), 16u) << "more than BestFit() compares";
      ASSERT_EQ(occupancy.BestFit(span, size), best->first);
      const std::int64_t begin = random.Below(kBytes);
      occupancy.Take(span, begin, begin + size);
      map.Take(span, begin, begin + size);
    }
  }
}

TEST(PlanOccupancy, IsEmptyAgainAfterClear) {
  Occupancy occupancy(5);
  occupancy.Take({1, 4}, 0, 100);
  EXPECT_EQ(occupancy.FirstFit({0, 2}, 1), 100);
  EXPECT_EQ(occupancy.FirstFit({4, 5}, 1), 0);
  occupancy.Clear();
  EXPECT_EQ(occupancy.FirstFit({0, 5}, 1), 0);
}

TEST(PlanOccupancy, HoldsOffsetsAsLargeAsProblemsMayHave) {
  constexpr std::int64_t kTop = std::int64_t{1} << 60;
  Occupancy occupancy(2);
  occupancy.Take({0, 2}, 0, kTop);
  EXPECT_EQ(occupancy.FirstFit({1, 2}, std::int64_t{1} << 46), kTop);
}

}  // namespace
}  // namespace thimble::plan
