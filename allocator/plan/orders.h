// The orders in which buffers are placed. No order is best for every problem, so the searches try
// many of one family: buffers are sorted by a weighted sum of the logarithms of their traits, the
// largest sum first. That covers size, area, lifetime, size times root of lifetime, load before
// size, and all between. Fixed-point logarithms keep the sum an integer, the same on every machine.
#pragma once

#include <cstdint>
#include <vector>

#include "allocator/plan/random.h"

namespace thimble::plan {

enum class Fit : std::uint8_t { kFirst, kBest };

// log2(x) in units of 2^-16, for x >= 1. Rounded down, by at most 2 units.
std::int64_t Log2(std::uint64_t x);

// By buffer, as values of Log2().
struct Traits {
  std::vector<std::int64_t> size;
  std::vector<std::int64_t> length;  // how long it lives, or how many neighbours it has
  std::vector<std::int64_t> load;    // the most bytes live together with it
};

struct Rule {
  int size = 0;  // weights
  int length = 0;
  int load = 0;
  // Buffers within a factor of 2^(shorter/4) of the longest come before all others; 0: none do.
  int long_first = 0;
  int noise = 0;  // in units of 1/16 of log2
  Fit fit = Fit::kFirst;
};

// The rules to try first, the most promising in front. The very first is size alone, as in
// SmartPool.
const std::vector<Rule>& Portfolio();

// A random rule: any, or one near `best`.
Rule AnyRule(Random& random);
Rule NearbyRule(const Rule& best, Random& random);

// The buffers of `movable` in the order of placing. Equal ones stay in the order of their indices.
std::vector<std::int32_t> MakeOrder(const std::vector<std::int32_t>& movable, const Traits& traits,
                                    const Rule& rule, Random& random);

// `movable` sorted by falling key (one per buffer, movable or not).
std::vector<std::int32_t> SortByKey(const std::vector<std::int32_t>& movable,
                                    const std::vector<std::int64_t>& keys);

}  // namespace thimble::plan
