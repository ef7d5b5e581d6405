#include "allocator/plan/orders.h"

#include <algorithm>

namespace thimble::plan {
namespace {

constexpr int kFraction = 16;
constexpr std::int64_t kOne = std::int64_t{1} << kFraction;

}  // namespace

std::int64_t Log2(std::uint64_t x) {
  const int whole = 63 - __builtin_clzll(x);
  // x as a number in [1, 2) with 31 bits after the point. Each squaring gives one more bit of the
  // logarithm.
  std::uint64_t mantissa = whole > 31 ? x >> (whole - 31) : x << (31 - whole);
  std::int64_t log = whole;
  for (int bit = 0; bit < kFraction; ++bit) {
    mantissa = (mantissa * mantissa) >> 31;
    const bool carry = mantissa >= (std::uint64_t{1} << 32);
    if (carry) mantissa >>= 1;
    log = 2 * log + (carry ? 1 : 0);
  }
  return log;
}

const std::vector<Rule>& Portfolio() {
  // size, length, load, long_first, noise, fit
  static const auto& rules = *new std::vector<Rule>{
      {4, 0, 0, 0, 0, Fit::kFirst},   {4, 4, 0, 0, 0, Fit::kFirst},  {4, 2, 0, 0, 0, Fit::kFirst},
      {4, 0, 64, 0, 0, Fit::kFirst},  {4, 4, 64, 0, 0, Fit::kFirst}, {4, 2, 64, 0, 0, Fit::kFirst},
      {4, 1, 0, 0, 0, Fit::kFirst},   {4, 1, 4, 0, 0, Fit::kFirst},  {4, 0, 256, 0, 0, Fit::kBest},
      {0, 4, 0, 0, 0, Fit::kFirst},   {4, 0, 0, 12, 0, Fit::kFirst}, {4, 0, 0, 0, 0, Fit::kBest},
      {0, 4, 256, 0, 0, Fit::kFirst}, {2, 4, 0, 0, 0, Fit::kFirst},  {4, 0, 0, 24, 0, Fit::kFirst},
      {4, 4, 0, 0, 0, Fit::kBest},    {0, 4, 0, 0, 0, Fit::kBest},   {4, 0, 0, 12, 0, Fit::kBest},
  };
  return rules;
}

Rule AnyRule(Random& random) {
  constexpr int kLoads[] = {0, 4, 16, 64, 256};
  constexpr int kLongFirst[] = {0, 0, 0, 0, 8, 24};
  Rule rule;
  rule.size = static_cast<int>(random.Below(9));
  rule.length = static_cast<int>(random.Below(7));
  rule.load = kLoads[random.Below(std::size(kLoads))];
  rule.long_first = kLongFirst[random.Below(std::size(kLongFirst))];
  rule.fit = random.OneIn(4) ? Fit::kBest : Fit::kFirst;
  return rule;
}

Rule NearbyRule(const Rule& best, Random& random) {
  const auto nudge = [&random](int weight) {
    return std::max(0, weight + static_cast<int>(random.Below(weight / 2 + 3)) - weight / 4 - 1);
  };
  Rule rule = best;
  rule.size = nudge(best.size);
  rule.length = nudge(best.length);
  if (random.OneIn(2)) rule.load = nudge(best.load);
  if (random.OneIn(3)) rule.long_first = nudge(best.long_first);
  if (random.OneIn(7)) rule.fit = best.fit == Fit::kFirst ? Fit::kBest : Fit::kFirst;
  if (random.OneIn(2)) rule.noise = static_cast<int>(random.Below(16));
  return rule;
}

std::vector<std::int32_t> MakeOrder(const std::vector<std::int32_t>& movable, const Traits& traits,
                                    const Rule& rule, Random& random) {
  constexpr std::int64_t kBeforeAll = std::int64_t{1} << 48;  // more than any weighted sum
  std::int64_t longest = 0;
  for (const std::int64_t length : traits.length) longest = std::max(longest, length);
  std::vector<std::int64_t> keys(traits.size.size());
  for (const std::int32_t i : movable) {
    keys[i] =
        rule.size * traits.size[i] + rule.length * traits.length[i] + rule.load * traits.load[i];
    if (rule.noise != 0) keys[i] += random.Below(rule.noise * (kOne / 4));
    if (rule.long_first != 0 && 4 * (longest - traits.length[i]) <= rule.long_first * kOne) {
      keys[i] += kBeforeAll;
    }
  }
  return SortByKey(movable, keys);
}

std::vector<std::int32_t> SortByKey(const std::vector<std::int32_t>& movable,
                                    const std::vector<std::int64_t>& keys) {
  std::vector<std::int32_t> order = movable;
  std::stable_sort(order.begin(), order.end(),
                   [&keys](std::int32_t a, std::int32_t b) { return keys[a] > keys[b]; });
  return order;
}

}  // namespace thimble::plan
