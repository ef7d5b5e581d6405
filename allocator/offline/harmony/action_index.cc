#include "allocator/offline/harmony/action_index.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace thimble::harmony {

ActionIndex::ActionIndex(const Schedule& schedule)
    : schedule_(schedule), tasks_(schedule.plan.gpus) {
  for (const Action& action : schedule.actions) {
    actions_[{action.gpu, action.task, action.kind}].push_back(&action);
  }
  for (auto& [key, actions] : actions_) {
    std::stable_sort(actions.begin(), actions.end(),
                     [](const Action* a, const Action* b) { return a->begin < b->begin; });
  }
  for (int gpu = 0; gpu < plan().gpus; ++gpu) {
    for (std::size_t t = 0; t < plan().tasks.size(); ++t) {
      if (!is_pipeline() || plan().tasks[t].gpu == gpu) tasks_[gpu].push_back(static_cast<int>(t));
    }
  }
}

const ActionIndex::Actions& ActionIndex::Find(int gpu, int t, Kind kind) const {
  const auto found = actions_.find({gpu, t, kind});
  return found == actions_.end() ? none_ : found->second;
}

ActionIndex::Actions ActionIndex::Find(int gpu, int t, Kind kind, Pack layers, int first,
                                       int end) const {
  Actions result;
  for (const Action* action : Find(gpu, t, kind)) {
    if (Overlap(action->layers, layers) && action->first_sample < end &&
        action->end_sample > first) {
      result.push_back(action);
    }
  }
  return result;
}

double ActionIndex::ComputedAt(int lane, int t, int layer, int first, int end) const {
  const Kind kind = task(t).is_backward() ? Kind::kBackward : Kind::kForward;
  const Actions actions = Find(GpuOf(lane, t), t, kind, {layer, layer}, first, end);
  if (!Cover(actions, first, end)) return -1;
  double time = 0;
  for (const Action* action : actions) time = std::max(time, action->end);
  return time;
}

std::string ActionIndex::Name(const Action& action) {
  return absl::StrCat(NameOf(action.kind), " of task ", action.task, ", layers ",
                      action.layers.first, " to ", action.layers.last, ", samples ",
                      action.first_sample, " to ", action.end_sample - 1, " on GPU ", action.gpu);
}

absl::Status Wrong(const std::string& what) { return absl::InternalError(what); }

bool Cover(const ActionIndex::Actions& actions, int first, int end) {
  std::vector<std::pair<int, int>> ranges;
  for (const Action* action : actions)
    ranges.emplace_back(action->first_sample, action->end_sample);
  std::sort(ranges.begin(), ranges.end());
  int covered = first;
  for (const auto& [from, to] : ranges) {
    if (from > covered) break;
    covered = std::max(covered, to);
  }
  return covered >= end;
}

}  // namespace thimble::harmony
