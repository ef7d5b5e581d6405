#include "allocator/harmony/shape.h"

#include <algorithm>

namespace thimble::harmony {
namespace {

// The fewest segments of about the same work that fit, with room for the weights of the next pack
// and for boundaries on their way; none if one does.
std::vector<int> Segments(const Costs& costs, Pass pass, int microbatch, Pack pack,
                          double memory_bytes) {
  const double below = costs.InputBytes(microbatch, pack.first);
  const double above = costs.InputBytes(microbatch, pack.last + 1);
  const double room = memory_bytes - 3 * costs.WeightBytes(pack) - 2 * (below + above) - below;
  const int most = pack.last - pack.first + 1;
  for (int count = 1; count <= most; ++count) {
    std::vector<int> firsts;
    const double part = costs.Seconds(pass, microbatch, pack) / count;
    int first = pack.first;
    bool fits = true;
    for (int i = 0; i < count && fits; ++i) {
      firsts.push_back(first);
      int last = first;
      while (last < pack.last && pack.last - last > count - 1 - i &&
             (i == count - 1 ||
              costs.Seconds(pass, microbatch, {pack.first, last + 1}) <= part * (i + 1) * 1.0001)) {
        ++last;
      }
      const double inner = last < pack.last ? costs.InputBytes(microbatch, last + 1) : 0;
      fits = costs.WorkBytes(pass, microbatch, {first, last}) + inner +
                 costs.InputBytes(microbatch, first) <=
             room;
      first = last + 1;
    }
    if (!fits) continue;
    if (count == 1) firsts.clear();
    return firsts;
  }
  return {};
}

double SecondsOf(const Costs& costs, Pass pass, int batch, int count, Pack pack) {
  if (pack.last < pack.first) return 0;
  double sum = 0;
  for (const int size : EvenSplit(batch, count)) sum += costs.Seconds(pass, size, pack);
  return sum;
}

}  // namespace

double TaskBytes(const Costs& costs, Pass pass, int microbatch, Pack pack) {
  const double weights = costs.WeightBytes(pack);
  const double below = costs.InputBytes(microbatch, pack.first);
  const double above = costs.InputBytes(microbatch, pack.last + 1);
  const double bytes = costs.WorkBytes(pass, microbatch, pack) + weights + below + above;
  if (pass == Pass::kForward) return bytes;
  return bytes + weights + (pack.first > 0 ? below : 0);
}

Plan PlanOf(const Costs& costs, const Server& server, const Shape& shape, int batch) {
  const int layers = costs.layer_count();
  const int gpus = server.gpu_count();
  Plan plan;
  plan.mode = shape.mode;
  plan.gpus = gpus;
  plan.batch = batch;
  plan.boundaries_on_host = shape.boundaries_on_host;
  const auto add = [&](Pack pack, Pass pass, int count) {
    Task task;
    task.pack = pack;
    task.pass = pass;
    task.microbatches = EvenSplit(plan.share(), count);
    if (shape.mode == Mode::kPipeline) task.gpu = static_cast<int>(plan.tasks.size()) % gpus;
    if (pack.first != shape.fused_first) {
      task.segments = Segments(costs, pass, task.microbatches[0], pack, server.memory_bytes);
    }
    plan.tasks.push_back(task);
  };
  for (std::size_t i = 0; i < shape.forward.size(); ++i) {
    const int next = i + 1 < shape.forward.size() ? shape.forward[i + 1] : shape.fused_first;
    add({shape.forward[i], next - 1}, Pass::kForward, shape.forward_count);
  }
  add({shape.fused_first, layers - 1}, Pass::kBackward, shape.fused_count);
  int next = shape.fused_first;
  for (std::size_t i = shape.backward.size(); i-- > 0;) {
    add({shape.backward[i], next - 1}, Pass::kBackward, shape.backward_count);
    next = shape.backward[i];
  }
  return plan;
}

Shape ShapeOf(const Plan& plan) {
  Shape shape;
  shape.mode = plan.mode;
  shape.boundaries_on_host = plan.boundaries_on_host;
  const int fused = plan.fused();
  shape.fused_first = plan.tasks[fused].pack.first;
  shape.fused_count = static_cast<int>(plan.tasks[fused].microbatches.size());
  shape.forward_count = shape.backward_count = shape.fused_count;
  for (int t = 0; t < fused; ++t) {
    shape.forward.push_back(plan.tasks[t].pack.first);
    shape.forward_count = static_cast<int>(plan.tasks[t].microbatches.size());
  }
  for (int t = static_cast<int>(plan.tasks.size()) - 1; t > fused; --t) {
    shape.backward.push_back(plan.tasks[t].pack.first);
    shape.backward_count = static_cast<int>(plan.tasks[t].microbatches.size());
  }
  return shape;
}

std::vector<int> Counts(int batch, int largest) {
  std::vector<int> counts;
  int before = batch + 1;
  for (int count = 1; count <= batch; ++count) {
    const int size = (batch + count - 1) / count;
    if (size < before && size <= largest) counts.push_back(count);
    before = size;
  }
  return counts;
}

double ComputeSeconds(const Costs& costs, const Shape& shape, int share) {
  const Pack below = {0, shape.fused_first - 1};
  const double sum = SecondsOf(costs, Pass::kForward, share, shape.forward_count, below) +
                     SecondsOf(costs, Pass::kBackward, share, shape.backward_count, below) +
                     SecondsOf(costs, Pass::kBackward, share, shape.fused_count,
                               {shape.fused_first, costs.layer_count() - 1});
  return sum;
}

std::vector<int> CutTapered(const Costs& costs, Pass pass, int microbatch, int end, int count,
                            double growth) {
  const double all = costs.Seconds(pass, microbatch, {0, end - 1});
  double weights = 0;
  double weight = 1;
  for (int i = 0; i < count; ++i, weight *= growth) weights += weight;
  std::vector<int> firsts;
  double until = 0;
  weight = 1;
  int layer = 0;
  for (int i = 0; i < count && layer < end; ++i, weight *= growth) {
    firsts.push_back(layer++);
    until += all * weight / weights;
    while (layer < end && costs.Seconds(pass, microbatch, {0, layer}) <= until) ++layer;
  }
  return firsts;
}

int LargestFused(const Costs& costs, int microbatch, double memory_bytes) {
  const int layers = costs.layer_count();
  int first = layers;
  while (first > 0 &&
         TaskBytes(costs, Pass::kBackward, microbatch, {first - 1, layers - 1}) <= memory_bytes) {
    --first;
  }
  return first;
}

}  // namespace thimble::harmony
