#include "allocator/offline/harmony/shape.h"

#include <algorithm>

namespace thimble::harmony {
namespace {

// The first layers of the fewest segments of about equal work that fit; every layer if none fit.
std::vector<int> CutToFit(const Costs& costs, Pass pass, int microbatch, Pack pack, double room) {
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
    if (fits || count == most) return firsts;
  }
  return {};
}

// Cuts a task at kept layers, and the layers between so that they fit, with room for the weights of
// the next pack and for boundaries in transit.
void AddSegments(const Costs& costs, const std::vector<Keep>& keep, double memory_bytes,
                 Task& task) {
  const int size = task.microbatches[0];
  const double below = costs.InputBytes(size, task.pack.first);
  const double above = costs.InputBytes(size, task.pack.last + 1);
  const double room = memory_bytes - 3 * costs.WeightBytes(task.pack) - 2 * (below + above) - below;
  const auto kept = [&](int layer) { return keep.empty() ? Keep::kNothing : keep[layer]; };
  for (int layer = task.pack.first; layer <= task.pack.last;) {
    if (task.is_backward() && kept(layer) != Keep::kNothing) {
      task.segments.push_back(layer);
      task.keep.push_back(kept(layer++));
      continue;
    }
    int end = layer;
    while (end <= task.pack.last && (!task.is_backward() || kept(end) == Keep::kNothing)) ++end;
    for (const int first : CutToFit(costs, task.pass, size, {layer, end - 1}, room)) {
      task.segments.push_back(first);
      task.keep.push_back(Keep::kNothing);
    }
    layer = end;
  }
  const bool is_any_kept = std::any_of(task.keep.begin(), task.keep.end(),
                                       [](Keep one) { return one != Keep::kNothing; });
  if (!is_any_kept) task.keep.clear();
  if (task.segments.size() == 1 && !is_any_kept) task.segments.clear();
}

// Whether every task that uses the weights of this one runs on its GPU.
bool IsAlone(const Plan& plan, const Task& task) {
  return std::all_of(plan.tasks.begin(), plan.tasks.end(), [&](const Task& other) {
    return other.gpu == task.gpu || !Overlap(other.pack, task.pack);
  });
}

// The layers a shape can really keep: their forward is on their GPU with their microbatches.
std::vector<Keep> MayKeep(const Shape& shape, int gpus) {
  std::vector<Keep> keep = shape.keep;
  if (shape.forward_count != shape.backward_count) keep.clear();
  if (shape.mode == Mode::kDataParallel || gpus == 1) return keep;
  for (int layer = 0; layer < static_cast<int>(keep.size()); ++layer) {
    const auto place = [layer](const std::vector<int>& firsts) {
      return static_cast<int>(std::upper_bound(firsts.begin(), firsts.end(), layer) -
                              firsts.begin()) -
             1;
    };
    const int backward =
        static_cast<int>(shape.forward.size() + shape.backward.size()) - place(shape.backward);
    if (place(shape.forward) % gpus != backward % gpus) keep[layer] = Keep::kNothing;
  }
  return keep;
}

// The most kept bytes on a GPU at once: those that stay, and the largest that comes and goes.
double RoomToKeep(const Costs& costs, const std::vector<Keep>& keep,
                  const std::vector<int>& microbatches) {
  double stays = 0;
  double largest = 0;
  for (int layer = 0; layer < static_cast<int>(keep.size()); ++layer) {
    for (const int size : microbatches) {
      const double bytes = costs.KeptBytes(size, {layer, layer});
      if (keep[layer] == Keep::kOnGpu) stays += bytes;
      if (keep[layer] == Keep::kOnHost) largest = std::max(largest, bytes);
    }
  }
  return stays + largest;
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

double LeastBytes(const Costs& costs) {
  double least = 0;
  for (int layer = 0; layer < costs.layer_count(); ++layer) {
    for (const Pass pass : {Pass::kForward, Pass::kBackward}) {
      least = std::max(least, TaskBytes(costs, pass, 1, {layer, layer}));
    }
  }
  return least;
}

double MostBytes(const Costs& costs, int batch) {
  const int layers = costs.layer_count();
  const int size = std::min(batch, costs.largest());
  const int count = (batch + size - 1) / size;
  double bytes = HostBytes(costs);
  for (int layer = 0; layer < layers; ++layer) {
    bytes += count * (costs.KeptBytes(size, {layer, layer}) + costs.InputBytes(size, layer));
  }
  return bytes;
}

Plan PlanOf(const Costs& costs, const Server& server, const Shape& shape, int batch) {
  const int layers = costs.layer_count();
  const int gpus = server.gpu_count();
  Plan plan;
  plan.mode = shape.mode;
  plan.gpus = gpus;
  plan.batch = batch;
  plan.boundaries_on_host = shape.boundaries_on_host;
  const std::vector<Keep> keep = MayKeep(shape, gpus);
  const auto add = [&](Pack pack, Pass pass, int count) {
    Task task;
    task.pack = pack;
    task.pass = pass;
    task.microbatches = EvenSplit(plan.share(), count);
    if (shape.mode == Mode::kPipeline) task.gpu = static_cast<int>(plan.tasks.size()) % gpus;
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
  for (Task& task : plan.tasks) {
    task.is_resident =
        task.is_backward() && task.pack.first >= shape.resident_first && IsAlone(plan, task);
  }
  double room =
      server.memory_bytes - RoomToKeep(costs, keep, EvenSplit(plan.share(), shape.backward_count));
  double resident = 0;
  for (int gpu = 0; gpu < gpus; ++gpu) {
    resident = std::max(resident, ResidentBytes(costs, plan, gpu));
  }
  room -= resident;
  for (Task& task : plan.tasks) {
    if (task.pack.first != shape.fused_first) AddSegments(costs, keep, room, task);
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
  double sum = SecondsOf(costs, Pass::kForward, share, shape.forward_count, below) +
               SecondsOf(costs, Pass::kBackward, share, shape.backward_count, below) +
               SecondsOf(costs, Pass::kBackward, share, shape.fused_count,
                         {shape.fused_first, costs.layer_count() - 1});
  for (int layer = 0; layer < static_cast<int>(shape.keep.size()); ++layer) {
    if (shape.keep[layer] == Keep::kNothing) continue;
    sum -= SecondsOf(costs, Pass::kForward, share, shape.backward_count, {layer, layer});
  }
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
