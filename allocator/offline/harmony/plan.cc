#include "allocator/offline/harmony/plan.h"

namespace thimble::harmony {

int Plan::forward_count() const {
  int count = 0;
  while (!tasks[count].is_backward()) ++count;
  return count;
}

bool IsResident(const Plan& plan, int gpu, int layer) {
  for (const Task& task : plan.tasks) {
    if (!task.is_resident || !Overlap(task.pack, {layer, layer})) continue;
    return task.gpu == gpu || task.gpu == kEveryGpu;
  }
  return false;
}

double ResidentBytes(const Costs& costs, const Plan& plan, int gpu) {
  const double sharers = plan.mode == Mode::kPipeline ? 1 : plan.gpus;
  double bytes = 0;
  for (const Task& task : plan.tasks) {
    if (!task.is_resident || (task.gpu != gpu && task.gpu != kEveryGpu)) continue;
    bytes += costs.WeightBytes(task.pack) * (1 + kStateCopies / sharers);
  }
  return bytes;
}

std::vector<int> EvenSplit(int batch, int count) {
  std::vector<int> sizes(count, batch / count);
  for (int i = 0; i < batch % count; ++i) ++sizes[i];
  return sizes;
}

std::vector<Segment> SegmentsDown(const Task& task) {
  const auto keep = [&](std::size_t i) {
    return task.keep.empty() ? Keep::kNothing : task.keep[i];
  };
  std::vector<Segment> segments;
  int last = task.pack.last;
  for (std::size_t i = task.segments.size(); i-- > 0;) {
    segments.push_back({{task.segments[i], last}, keep(i)});
    last = task.segments[i] - 1;
  }
  if (segments.empty()) segments.push_back({task.pack, keep(0)});
  return segments;
}

std::vector<int> SampleBounds(const std::vector<int>& microbatches) {
  std::vector<int> bounds(1, 0);
  for (const int size : microbatches) bounds.push_back(bounds.back() + size);
  return bounds;
}

const char* NameOf(Mode mode) { return mode == Mode::kPipeline ? "pp" : "dp"; }
const char* NameOf(Rules rules) { return rules == Rules::kThimble ? "thimble" : "harmony"; }

}  // namespace thimble::harmony
