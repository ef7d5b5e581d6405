#include <algorithm>
#include <iterator>
#include <tuple>
#include <vector>

#include "allocator/offline/harmony/plan_search.h"

namespace thimble::harmony {

void PlanSearch::TryPublished(const std::vector<Shape>& shapes, std::uint64_t budget) {
  for (Shape shape : shapes) {
    if (!elite_.empty() && IsOver(budget)) return;
    if (Try(shape)) continue;
    shape.boundaries_on_host = true;
    Try(shape);
  }
}

void PlanSearch::Grid(Mode mode, std::uint64_t budget) {
  constexpr int kFusedSizes = 6;
  const int share = ShareOf(mode);
  const int layers = costs_.layer_count();
  const std::vector<int> counts = Counts(share, costs_.largest());
  struct Point {
    double bound = 0;
    int fused_first = 0;
    int forward = 0;
    int backward = 0;
    int fused = 0;
  };
  std::vector<Point> points;
  for (const int fused : counts) {
    const int first = LargestFused(costs_, EvenSplit(share, fused)[0], server_.memory_bytes);
    if (first == layers) continue;
    for (int i = 0; i < kFusedSizes; ++i) {
      const int at = first + (layers - 1 - first) * i / kFusedSizes;
      for (const int backward : counts) {
        for (const int forward : counts) {
          Shape shape;
          shape.mode = mode;
          shape.fused_first = at;
          shape.forward_count = forward;
          shape.backward_count = backward;
          shape.fused_count = fused;
          // Fewer microbatches than GPUs would leave some GPUs idle.
          const int least = std::min({fused, backward, forward});
          const double idle = std::max(1.0, static_cast<double>(LanesOf(mode)) / least);
          points.push_back({Bound(shape) * idle, at, forward, backward, fused});
          if (at == 0) break;
        }
        if (at == 0) break;
      }
      if (first == layers - 1) break;
    }
  }
  std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) {
    return std::tie(a.bound, a.fused_first, a.forward, a.backward, a.fused) <
           std::tie(b.bound, b.fused_first, b.forward, b.backward, b.fused);
  });
  constexpr double kGrowths[] = {1, 1.05, 1.1, 1.2, 1.35, 1.6};
  const auto growth = [&] { return kGrowths[Random(static_cast<int>(std::size(kGrowths)))]; };
  while (!points.empty() && !IsOver(budget)) {
    // Tries those that compute least more often.
    const int x = Random(1 << 10);
    const std::size_t chosen = points.size() * x / (1 << 10) * x / (1 << 10);
    const Point& point = points[chosen];
    Shape shape;
    shape.mode = mode;
    shape.fused_first = point.fused_first;
    shape.forward_count = point.forward;
    shape.backward_count = point.backward;
    shape.fused_count = point.fused;
    if (point.fused_first > 0) {
      const int most = std::min(point.fused_first, 24 * LanesOf(mode) / 2 + 6);
      shape.forward = CutTapered(costs_, Pass::kForward, EvenSplit(share, point.forward)[0],
                                 point.fused_first, 1 + Random(most), growth());
      shape.backward = CutTapered(costs_, Pass::kBackward, EvenSplit(share, point.backward)[0],
                                  point.fused_first, 1 + Random(most), growth());
    }
    Try(shape);
  }
}

void PlanSearch::Smallest() {
  const int layers = costs_.layer_count();
  for (const Mode mode : {Mode::kPipeline, Mode::kDataParallel}) {
    if (!IsAllowed(mode, options_, server_, batch_)) continue;
    const std::vector<int> counts = Counts(ShareOf(mode), costs_.largest());
    for (auto count = counts.rbegin(); count != counts.rend(); ++count) {
      Shape shape;
      shape.mode = mode;
      shape.boundaries_on_host = true;
      shape.fused_first = layers - 1;
      shape.forward_count = shape.backward_count = shape.fused_count = *count;
      for (int layer = 0; layer + 1 < layers; ++layer) shape.forward.push_back(layer);
      shape.backward = shape.forward;
      Try(shape);
      if (!elite_.empty()) return;
    }
  }
}

}  // namespace thimble::harmony
