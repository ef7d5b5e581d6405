#include "allocator/harmony/packers.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace thimble::harmony {
namespace {

// Into `count` packs of about the same sum; empty if one of them would be.
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

std::vector<Pack> Greedy(const std::vector<double>& bytes, const std::vector<double>& inputs,
                         double memory_bytes) {
  std::vector<Pack> packs;
  int last = static_cast<int>(bytes.size()) - 1;
  double sum = 0;
  for (int layer = last; layer >= 0;) {
    if (sum + bytes[layer] + inputs[layer] < memory_bytes) {
      sum += bytes[layer--];
    } else if (layer == last) {
      return {};
    } else {
      packs.push_back({layer + 1, last});
      last = layer;
      sum = 0;
    }
  }
  packs.push_back({0, last});
  std::reverse(packs.begin(), packs.end());
  return packs;
}

}  // namespace

std::vector<Pack> CutIntoPacks(const Costs& costs, Packer packer, Pass pass, int size, int layers,
                               double memory_bytes) {
  std::vector<double> seconds;
  std::vector<double> inputs;
  std::vector<double> bytes;  // without inputs
  double sum = 0;
  for (int layer = 0; layer < layers; ++layer) {
    const Pack one = {layer, layer};
    seconds.push_back(costs.Seconds(pass, size, one));
    inputs.push_back(costs.InputBytes(size, layer));
    bytes.push_back(costs.PeakBytes(pass, size, one) - inputs.back());
    sum += bytes.back();
  }
  if (packer == Packer::kGreedyMemory) return Greedy(bytes, inputs, memory_bytes);
  const bool by_time = packer == Packer::kBalancedTime;
  for (int count = std::max(1, static_cast<int>(std::ceil(sum / memory_bytes))); count <= layers;
       ++count) {
    std::vector<Pack> packs = BalancedSplit(by_time ? seconds : bytes, count, !by_time);
    const bool fits = std::all_of(packs.begin(), packs.end(), [&](const Pack& pack) {
      double held = inputs[pack.first];
      for (int layer = pack.first; layer <= pack.last; ++layer) held += bytes[layer];
      return held <= memory_bytes;
    });
    if (!packs.empty() && fits) return packs;
  }
  return {};
}

}  // namespace thimble::harmony
