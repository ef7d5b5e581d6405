#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/base/status_macros.h"
#include "allocator/offline/harmony/schedule_checker.h"

namespace thimble::harmony {

absl::Status ScheduleChecker::Late(const Action& user, const std::string& what, double there) {
  return Wrong(
      absl::StrCat(ActionIndex::Name(user), " begins at ", user.begin, " s, but ", what,
                   there < 0 ? " is never there" : absl::StrCat(" is there at ", there, " s")));
}

// Weights were fetched by the task, or by the previous one on the GPU, which has kept them.
absl::Status ScheduleChecker::Weights(const Action& action) const {
  const std::vector<int>& tasks = index_.TasksOf(action.gpu);
  const auto here = std::find(tasks.begin(), tasks.end(), action.task);
  for (int layer = action.layers.first; layer <= action.layers.last; ++layer) {
    if (IsResident(plan_, action.gpu, layer)) continue;
    double there = -1;
    for (auto at = here;; --at) {
      if (layer < plan_.tasks[*at].pack.first || layer > plan_.tasks[*at].pack.last) break;
      const ActionIndex::Actions found =
          index_.Find(action.gpu, *at, Kind::kWeightsIn, {layer, layer}, 0, plan_.share());
      if (!found.empty()) {
        there = found.front()->end;
        if (IsThimble() && index_.lanes() > 1) {
          const ActionIndex::Actions gathers =
              index_.Find(action.gpu, *at, Kind::kGather, {layer, layer}, 0, plan_.share());
          if (gathers.empty()) return Late(action, "what the other GPUs fetched", -1);
          there = gathers.front()->end;
          for (int lane = 0; lane < index_.lanes(); ++lane) {
            for (const Action* part :
                 index_.Find(lane, *at, Kind::kWeightsIn, {layer, layer}, 0, plan_.share())) {
              if (part->end > gathers.front()->begin + kSlackSeconds) {
                return Late(*gathers.front(), "a part of the weights", part->end);
              }
            }
          }
        }
        break;
      }
      if (at == tasks.begin() || !IsThimble()) break;
    }
    if (there < 0 || there > action.begin + kSlackSeconds) {
      return Late(action, absl::StrCat("the weights of layer ", layer), there);
    }
  }
  return absl::OkStatus();
}

// What task `t` takes from the previous task: the input of its first layer, or the gradient of its
// last layer's output.
absl::Status ScheduleChecker::Boundary(int lane, int t, int layer, const Action& user) const {
  const int gpu = index_.GpuOf(lane, t);
  const int from = index_.GpuOf(lane, t - 1);
  const int made = plan_.tasks[t - 1].is_backward() ? layer : layer - 1;
  const int first = user.first_sample;
  const int end = user.end_sample;
  ActionIndex::Actions copies = index_.Find(gpu, t, Kind::kReceive, {layer, layer}, first, end);
  for (const Action* copy : index_.Find(gpu, t, Kind::kBoundaryIn, {layer, layer}, first, end)) {
    copies.push_back(copy);
  }
  if (copies.empty() && gpu == from) {
    const double there = index_.ComputedAt(lane, t - 1, made, first, end);
    if (there >= 0 && there <= user.begin + kSlackSeconds) return absl::OkStatus();
    return Late(user, "its input", there);
  }
  if (!Cover(copies, first, end)) return Late(user, "its input", -1);
  for (const Action* copy : copies) {
    if (copy->end > user.begin + kSlackSeconds) return Late(user, "its input", copy->end);
    double there = index_.ComputedAt(lane, t - 1, made, copy->first_sample, copy->end_sample);
    if (there >= 0 && copy->kind == Kind::kBoundaryIn) {
      const ActionIndex::Actions outs = index_.Find(from, t - 1, Kind::kBoundaryOut, {layer, layer},
                                                    copy->first_sample, copy->end_sample);
      if (!Cover(outs, copy->first_sample, copy->end_sample)) there = -1;
      for (const Action* out : outs) {
        const double ready =
            index_.ComputedAt(lane, t - 1, made, out->first_sample, out->end_sample);
        if (ready < 0 || ready > out->begin + kSlackSeconds) return Late(*out, "it", ready);
        if (there >= 0) there = std::max(there, out->end);
      }
    }
    if (there < 0 || there > copy->begin + kSlackSeconds) return Late(*copy, "it", there);
  }
  return absl::OkStatus();
}

absl::Status ScheduleChecker::Stash(int lane, int t, int layer, const Action& user) const {
  const Kind kind = layer == 0 ? Kind::kDataIn : Kind::kStashIn;
  const ActionIndex::Actions ins = index_.Find(index_.GpuOf(lane, t), t, kind, {layer, layer},
                                               user.first_sample, user.end_sample);
  if (!Cover(ins, user.first_sample, user.end_sample)) return Late(user, "its input", -1);
  for (const Action* in : ins) {
    if (in->end > user.begin + kSlackSeconds) return Late(user, "its input", in->end);
    if (layer == 0) continue;
    int source = fused_ - 1;
    while (plan_.tasks[source].pack.first > layer) --source;
    const ActionIndex::Actions outs =
        index_.Find(index_.GpuOf(lane, source), source, Kind::kStashOut, {layer, layer},
                    in->first_sample, in->end_sample);
    if (!Cover(outs, in->first_sample, in->end_sample)) return Late(*in, "the stash", -1);
    for (const Action* out : outs) {
      if (out->end > in->begin + kSlackSeconds) return Late(*in, "the stash", out->end);
      if (layer == plan_.tasks[source].pack.first) {
        THIMBLE_RETURN_IF_ERROR(Boundary(lane, source, layer, *out));
        continue;
      }
      const double ready =
          index_.ComputedAt(lane, source, layer - 1, out->first_sample, out->end_sample);
      if (ready < 0 || ready > out->begin + kSlackSeconds) return Late(*out, "it", ready);
    }
  }
  return absl::OkStatus();
}

// Kept activations: made by a forward on the same GPU for exactly these samples.
absl::Status ScheduleChecker::Kept(int lane, int t, const Segment& segment,
                                   const Action& user) const {
  const int gpu = index_.GpuOf(lane, t);
  for (int layer = segment.layers.first; layer <= segment.layers.last; ++layer) {
    int source = 0;
    while (plan_.tasks[source].pack.last < layer) ++source;
    if (index_.GpuOf(lane, source) != gpu ||
        plan_.tasks[source].microbatches != plan_.tasks[t].microbatches) {
      return Late(user, absl::StrCat("the activations of layer ", layer), -1);
    }
    const double made = index_.ComputedAt(lane, source, layer, user.first_sample, user.end_sample);
    double there = made;
    if (segment.keep == Keep::kOnHost) {
      const ActionIndex::Actions outs = index_.Find(
          gpu, source, Kind::kActivationsOut, {layer, layer}, user.first_sample, user.end_sample);
      const ActionIndex::Actions ins = index_.Find(gpu, t, Kind::kActivationsIn, {layer, layer},
                                                   user.first_sample, user.end_sample);
      const bool in_order = outs.size() == 1 && ins.size() == 1 &&
                            outs[0]->begin >= made - kSlackSeconds &&
                            ins[0]->begin >= outs[0]->end - kSlackSeconds;
      there = in_order ? ins[0]->end : -1;
    }
    if (made < 0 || there < 0 || there > user.begin + kSlackSeconds) {
      return Late(user, absl::StrCat("the activations of layer ", layer), there);
    }
  }
  return absl::OkStatus();
}

}  // namespace thimble::harmony
