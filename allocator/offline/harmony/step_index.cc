#include "allocator/offline/harmony/step_index.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace thimble::harmony {

StepIndex::StepIndex(const Schedule& schedule) : schedule_(schedule), tasks_(schedule.plan.gpus) {
  for (const Step& step : schedule.steps) {
    steps_[{step.gpu, step.task, step.kind}].push_back(&step);
  }
  for (auto& [key, steps] : steps_) {
    std::stable_sort(steps.begin(), steps.end(),
                     [](const Step* a, const Step* b) { return a->begin < b->begin; });
  }
  for (int gpu = 0; gpu < plan().gpus; ++gpu) {
    for (std::size_t t = 0; t < plan().tasks.size(); ++t) {
      if (!is_pipeline() || plan().tasks[t].gpu == gpu) tasks_[gpu].push_back(static_cast<int>(t));
    }
  }
}

const StepIndex::Steps& StepIndex::Find(int gpu, int t, Kind kind) const {
  const auto found = steps_.find({gpu, t, kind});
  return found == steps_.end() ? none_ : found->second;
}

StepIndex::Steps StepIndex::Find(int gpu, int t, Kind kind, Pack layers, int first, int end) const {
  Steps result;
  for (const Step* step : Find(gpu, t, kind)) {
    if (Overlap(step->layers, layers) && step->first_sample < end && step->end_sample > first) {
      result.push_back(step);
    }
  }
  return result;
}

double StepIndex::ComputedAt(int lane, int t, int layer, int first, int end) const {
  const Kind kind = task(t).is_backward() ? Kind::kBackward : Kind::kForward;
  const Steps steps = Find(GpuOf(lane, t), t, kind, {layer, layer}, first, end);
  if (!Cover(steps, first, end)) return -1;
  double time = 0;
  for (const Step* step : steps) time = std::max(time, step->end);
  return time;
}

std::string StepIndex::Name(const Step& step) {
  return absl::StrCat(NameOf(step.kind), " of task ", step.task, ", layers ", step.layers.first,
                      " to ", step.layers.last, ", samples ", step.first_sample, " to ",
                      step.end_sample - 1, " on GPU ", step.gpu);
}

absl::Status Wrong(const std::string& what) { return absl::InternalError(what); }

bool Cover(const StepIndex::Steps& steps, int first, int end) {
  std::vector<std::pair<int, int>> ranges;
  for (const Step* step : steps) ranges.emplace_back(step->first_sample, step->end_sample);
  std::sort(ranges.begin(), ranges.end());
  int covered = first;
  for (const auto& [from, to] : ranges) {
    if (from > covered) break;
    covered = std::max(covered, to);
  }
  return covered >= end;
}

}  // namespace thimble::harmony
