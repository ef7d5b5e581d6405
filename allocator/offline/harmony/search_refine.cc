#include <algorithm>
#include <utility>
#include <vector>

#include "allocator/offline/harmony/plan_search.h"

namespace thimble::harmony {

// The bus carries away `rate` bytes of activations per second while the forward computes, and some
// may wait on the GPU: a layer is kept as soon as this is enough for it. Only layers that cost the
// fewest bytes per second of computing are kept.
Shape PlanSearch::KeepAtRate(Shape shape, double rate, double cheapest) const {
  shape.forward_count = shape.backward_count;
  const std::vector<int> sizes = EvenSplit(ShareOf(shape.mode), shape.backward_count);
  struct Layer {
    double seconds = 0;
    double bytes = 0;
  };
  std::vector<Layer> layers(shape.fused_first);
  std::vector<double> prices;
  for (int i = 0; i < shape.fused_first; ++i) {
    for (const int size : sizes) {
      layers[i].seconds += costs_.Seconds(Pass::kForward, size, {i, i});
      layers[i].bytes += costs_.KeptBytes(size, {i, i});
    }
    prices.push_back(layers[i].bytes / layers[i].seconds);
  }
  std::sort(prices.begin(), prices.end());
  const double dearest = prices[static_cast<std::size_t>((shape.fused_first - 1) * cheapest)];
  const double most_waiting = server_.memory_bytes / 4;
  shape.keep.assign(shape.fused_first, Keep::kNothing);
  double room = 0;
  for (int i = 0; i < shape.fused_first; ++i) {
    const Layer& layer = layers[i];
    room = std::min(room + rate * layer.seconds, std::max(most_waiting, layer.bytes));
    if (layer.bytes > room || layer.bytes > dearest * layer.seconds) continue;
    shape.keep[i] = Keep::kOnHost;
    room -= layer.bytes;
  }
  return shape;
}

void PlanSearch::StartKeeping(std::uint64_t budget) {
  const double rate = server_.HostBytesPerSecond() / gpus_;
  const std::vector<Candidate> starts = elite_;
  for (const Candidate& start : starts) {
    if (start.shape.fused_first == 0 || IsOver(budget)) continue;
    for (const double cheapest : {0.3, 0.6, 1.0}) {
      for (const double part : {0.1, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0}) {
        Try(KeepAtRate(start.shape, part * rate, cheapest));
      }
    }
  }
}

void PlanSearch::StartResiding(std::uint64_t budget) {
  const int layers = costs_.layer_count();
  const std::vector<Candidate> starts = elite_;
  for (const Candidate& start : starts) {
    for (int parts = 16; parts >= 1 && !IsOver(budget); --parts) {
      Shape shape = start.shape;
      shape.resident_first = layers - std::max(1, layers * parts / 16);
      Try(shape);
    }
  }
}

bool PlanSearch::ChangeKeep(Shape& shape) {
  if (shape.fused_first == 0 || shape.forward_count != shape.backward_count) return false;
  shape.keep.resize(shape.fused_first, Keep::kNothing);
  const int layer = Random(shape.fused_first);
  Keep& one = shape.keep[layer];
  if (one == Keep::kNothing) {
    one = Random(4) == 0 ? Keep::kOnGpu : Keep::kOnHost;
    return true;
  }
  const int other = layer + (Random(2) == 0 ? 1 : -1);
  if (Random(2) == 0 && other >= 0 && other < shape.fused_first) {
    std::swap(one, shape.keep[other]);
  } else {
    one = Keep::kNothing;
  }
  return true;
}

}  // namespace thimble::harmony
