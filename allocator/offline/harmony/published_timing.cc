#include "allocator/offline/harmony/published_timing.h"

#include <algorithm>
#include <limits>

#include "allocator/offline/harmony/published_builder.h"

namespace thimble::harmony {

std::vector<int> LastPiece(const std::vector<int>& from, const std::vector<int>& to) {
  const std::vector<int> ends = SampleBounds(from);
  std::vector<int> pieces;
  int end = 0;
  int piece = 0;
  for (const int size : to) {
    end += size;
    while (ends[piece + 1] < end) ++piece;
    pieces.push_back(piece);
  }
  return pieces;
}

std::vector<int> StashLayers(const Plan& plan, int task) {
  std::vector<int> layers;
  const Pack pack = plan.tasks[task].pack;
  for (std::size_t i = plan.tasks.size(); i-- > 0;) {
    if (!plan.tasks[i].is_backward()) break;
    const int head = plan.tasks[i].pack.first;
    if (head >= pack.first && head <= pack.last) layers.push_back(head);
  }
  return layers;  // backward packs descend, so these ascend
}

double PublishedTaskBytes(const Costs& costs, const Plan& plan, int task) {
  const Task& one = plan.tasks[task];
  const int size = one.microbatches[0];
  const double input = costs.InputBytes(size, one.pack.first);
  const double output = costs.InputBytes(size, one.pack.last + 1);
  double bytes = costs.PeakBytes(one.pass, size, one.pack) + input + output;
  if (one.is_backward()) return bytes + input + (one.pack.first > 0 ? input : 0);
  for (const int layer : StashLayers(plan, task)) bytes += costs.InputBytes(size, layer);
  return bytes;
}

Schedule TimePublished(const Costs& costs, const Server& server, const Plan& plan) {
  PublishedBuilder builder(costs, server, plan);
  const bool has_peers = plan.mode == Mode::kPipeline && plan.gpus > 1;
  for (int gpu = 0; gpu < (has_peers ? plan.gpus : 1); ++gpu) builder.AddGpu(gpu);
  Schedule schedule;
  schedule.plan = plan;
  schedule.actions = builder.Finish();
  if (schedule.actions.empty()) {
    schedule.seconds = std::numeric_limits<double>::infinity();
    return schedule;
  }
  if (!has_peers) {
    const std::vector<Action> first = schedule.actions;
    for (int gpu = 1; gpu < plan.gpus; ++gpu) {
      for (Action action : first) {
        action.gpu = gpu;
        schedule.actions.push_back(action);
      }
    }
  }
  schedule.peak_bytes.assign(plan.gpus, 0);
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    const double bytes = PublishedTaskBytes(costs, plan, static_cast<int>(i));
    for (int gpu = 0; gpu < plan.gpus; ++gpu) {
      if (has_peers && plan.tasks[i].gpu != gpu) continue;
      schedule.peak_bytes[gpu] = std::max(schedule.peak_bytes[gpu], bytes);
    }
  }
  AddUp(schedule);
  return schedule;
}

}  // namespace thimble::harmony
