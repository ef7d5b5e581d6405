#include "allocator/harmony/costs.h"

#include <algorithm>

namespace thimble::harmony {
namespace {

std::vector<double> Sums(int count, const std::vector<double>& low, const std::vector<double>& high,
                         double share) {
  std::vector<double> sums(count + 1, 0);
  for (int i = 0; i < count; ++i) sums[i + 1] = sums[i] + low[i] * (1 - share) + high[i] * share;
  return sums;
}

}  // namespace

Costs::Costs(const Profile& profile, int largest) : profile_(profile) {
  const int layers = profile.layer_count();
  weights_.assign(1, 0);
  updates_.assign(1, 0);
  inputs_.assign(1, 0);
  for (const Layer& layer : profile.layers) {
    weights_.push_back(weights_.back() + layer.weight_bytes);
    updates_.push_back(updates_.back() + layer.update_seconds);
    inputs_.push_back(inputs_.back() + layer.input_bytes);
  }
  const int top = std::min(largest, profile.largest_size());
  for (std::vector<Table>& tables : tables_) tables.resize(top + 1);
  for (int size = 1; size <= top; ++size) {
    const auto high = std::lower_bound(profile.samples.begin(), profile.samples.end(), size,
                                       [](const Sample& s, int value) { return s.size < value; });
    const auto low = high->size == size || high == profile.samples.begin() ? high : high - 1;
    // Below the smallest measured size, that one's figures: they are upper bounds.
    const double share =
        high == low ? 0 : static_cast<double>(size - low->size) / (high->size - low->size);
    tables_[0][size].seconds = Sums(layers, low->forward_seconds, high->forward_seconds, share);
    tables_[0][size].bytes = Sums(layers, low->forward_bytes, high->forward_bytes, share);
    tables_[1][size].seconds = Sums(layers, low->backward_seconds, high->backward_seconds, share);
    tables_[1][size].bytes = Sums(layers, low->backward_bytes, high->backward_bytes, share);
  }
}

double Costs::WorkBytes(Pass pass, int size, Pack pack) const {
  const double copies = pass == Pass::kForward ? 1 : 2;
  return std::max(
      0.0, PeakBytes(pass, size, pack) - copies * WeightBytes(pack) - InputBytes(size, pack.first));
}

}  // namespace thimble::harmony
