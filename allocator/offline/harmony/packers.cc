#include "allocator/offline/harmony/packers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace thimble::harmony {
namespace {

// What each layer of one pass needs alone.
struct Needs {
  std::vector<double> bytes;   // without the input
  std::vector<double> inputs;  // 0 if the packer does not count them
  double memory = 0;

  double Sum(Pack pack) const {
    return std::accumulate(bytes.begin() + pack.first, bytes.begin() + pack.last + 1, 0.0);
  }
};

std::vector<Pack> GreedyUp(const Needs& needs) {
  std::vector<Pack> packs;
  double sum = 0;
  for (int layer = 0; layer < static_cast<int>(needs.bytes.size()); ++layer) {
    sum += needs.bytes[layer];
    if (!packs.empty() && sum < needs.memory) {
      packs.back().last = layer;
      continue;
    }
    sum = needs.bytes[layer] + needs.inputs[layer];
    if (sum >= needs.memory) return {};
    packs.push_back({layer, layer});
  }
  return packs;
}

std::vector<Pack> GreedyDown(const Needs& needs) {
  std::vector<Pack> packs;
  double sum = 0;
  for (int layer = static_cast<int>(needs.bytes.size()) - 1; layer >= 0; --layer) {
    sum += needs.bytes[layer];
    if (!packs.empty() && sum + needs.inputs[layer] < needs.memory) {
      packs.back().first = layer;
      continue;
    }
    sum = needs.bytes[layer];
    if (sum + needs.inputs[layer] >= needs.memory) return {};
    packs.push_back({layer, layer});
  }
  std::reverse(packs.begin(), packs.end());
  return packs;
}

// Cuts into `count` packs of about the same sum; empty if one of them would be empty.
std::vector<Pack> BalancedSplit(const std::vector<double>& values, int count, bool whole_numbers) {
  std::vector<double> sums(values.size());
  std::partial_sum(values.begin(), values.end(), sums.begin());
  const double sum = sums.empty() ? 0 : sums.back();
  const double part = whole_numbers ? std::floor(sum / count) : sum / count;
  std::vector<Pack> packs;
  int first = 0;
  for (int i = 1; i <= count; ++i) {
    const auto end = i == count ? sums.end() : std::lower_bound(sums.begin(), sums.end(), part * i);
    const int next = static_cast<int>(end - sums.begin());
    if (next <= first) return {};
    packs.push_back({first, next - 1});
    first = next;
  }
  return packs;
}

// `fits` tells whether one pack fits.
template <typename Fits>
std::vector<Pack> Balanced(const Needs& needs, const std::vector<double>& values,
                           bool whole_numbers, Fits fits) {
  const int layers = static_cast<int>(needs.bytes.size());
  const double least = std::ceil(needs.Sum({0, layers - 1}) / needs.memory);
  for (int count = std::max(1, static_cast<int>(least)); count <= layers; ++count) {
    std::vector<Pack> packs = BalancedSplit(values, count, whole_numbers);
    if (!packs.empty() && std::all_of(packs.begin(), packs.end(), fits)) return packs;
  }
  return {};
}

bool CountsInput(Packer packer) {
  return packer != Packer::kGreedy && packer != Packer::kGreedyReverse &&
         packer != Packer::kBalanced;
}

}  // namespace

absl::string_view NameOf(Packer packer) {
  constexpr std::array<absl::string_view, kPackers> kNames = {
      "greedy",   "greedy_addx",   "greedy_reverse", "greedy_reverse_addx",
      "balanced", "balanced_addx", "balanced_time",  "reuse"};
  return kNames[static_cast<std::size_t>(packer)];
}

std::vector<Pack> CutIntoPacks(const Costs& costs, Packer packer, Pass pass, int size, int layers,
                               double memory_bytes) {
  Needs needs;
  needs.memory = memory_bytes;
  std::vector<double> seconds;
  for (int layer = 0; layer < layers; ++layer) {
    const double input = costs.InputBytes(size, layer);
    needs.bytes.push_back(costs.PeakBytes(pass, size, {layer, layer}) - input);
    needs.inputs.push_back(CountsInput(packer) ? input : 0);
    seconds.push_back(costs.LayerSeconds(pass, size, layer));
  }
  const auto is_below = [&](const Pack& pack) { return needs.Sum(pack) < memory_bytes; };
  const auto is_within = [&](const Pack& pack) {
    return needs.Sum(pack) + needs.inputs[pack.first] <= memory_bytes;
  };
  switch (packer) {
    case Packer::kGreedy:
    case Packer::kGreedyAddx:
      return GreedyUp(needs);
    case Packer::kGreedyReverse:
    case Packer::kGreedyReverseAddx:
      return GreedyDown(needs);
    case Packer::kBalanced:
      return Balanced(needs, needs.bytes, /*whole_numbers=*/true, is_below);
    case Packer::kBalancedAddx:
      return Balanced(needs, needs.bytes, /*whole_numbers=*/true, is_within);
    case Packer::kBalancedTime:
      return Balanced(needs, seconds, /*whole_numbers=*/false, is_within);
    case Packer::kReuse:
      break;
  }
  return {};
}

bool MayReuse(const Costs& costs, const std::vector<Pack>& packs, int size, double memory_bytes) {
  return std::all_of(packs.begin(), packs.end(), [&](const Pack& pack) {
    return costs.PeakBytes(Pass::kForward, size, pack) < memory_bytes;
  });
}

}  // namespace thimble::harmony
