#include "allocator/offline/harmony/costs.h"

#include <algorithm>
#include <cmath>

namespace thimble::harmony {
namespace {

std::vector<double> Sums(const std::vector<double>& values) {
  std::vector<double> sums(1, 0);
  for (const double value : values) sums.push_back(sums.back() + value);
  return sums;
}

// The figures of all layers at `size`, interpolated between the two measured sizes around it. Below
// the smallest size, its figures are upper bounds.
std::vector<double> At(const std::vector<const Sample*>& measured,
                       std::vector<double> Sample::*figures, int size) {
  const auto high =
      std::lower_bound(measured.begin(), measured.end(), size,
                       [](const Sample* one, int value) { return one->size < value; });
  if ((*high)->size == size || high == measured.begin()) return (*high)->*figures;
  const Sample& below = **(high - 1);
  const Sample& above = **high;
  std::vector<double> values = below.*figures;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double slope = ((above.*figures)[i] - values[i]) / (above.size - below.size);
    values[i] += slope * (size - below.size);
  }
  return values;
}

}  // namespace

Costs::Costs(const Profile& profile, int largest) : profile_(profile) {
  weights_.assign(1, 0);
  updates_.assign(1, 0);
  inputs_.assign(1, 0);
  for (const Layer& layer : profile.layers) {
    weights_.push_back(weights_.back() + layer.weight_bytes + layer.buffer_bytes);
    updates_.push_back(updates_.back() + layer.update_seconds);
    inputs_.push_back(inputs_.back() + layer.input_bytes);
  }
  for (const Pass pass : {Pass::kForward, Pass::kBackward}) AddTables(pass, largest);
}

void Costs::AddTables(Pass pass, int largest) {
  const bool is_forward = pass == Pass::kForward;
  const auto seconds = is_forward ? &Sample::forward_seconds : &Sample::backward_seconds;
  const auto bytes = is_forward ? &Sample::forward_bytes : &Sample::backward_bytes;
  std::vector<const Sample*> measured;
  for (const Sample& sample : profile_.samples) {
    if (!(sample.*seconds).empty()) measured.push_back(&sample);
  }
  smallest_[is_forward ? 0 : 1] = measured.front()->size;
  std::vector<Table>& tables = tables_[is_forward ? 0 : 1];
  tables.resize(std::min(largest, measured.back()->size) + 1);
  for (int size = 1; size < static_cast<int>(tables.size()); ++size) {
    std::vector<double> peaks = At(measured, bytes, size);
    for (double& peak : peaks) peak = std::floor(peak);  // whole bytes, as published
    tables[size].layer_seconds = At(measured, seconds, size);
    tables[size].seconds = Sums(tables[size].layer_seconds);
    tables[size].bytes = Sums(peaks);
  }
}

double Costs::WorkBytes(Pass pass, int size, Pack pack) const {
  const double copies = pass == Pass::kForward ? 1 : 2;
  return std::max(
      0.0, PeakBytes(pass, size, pack) - copies * WeightBytes(pack) - InputBytes(size, pack.first));
}

}  // namespace thimble::harmony
