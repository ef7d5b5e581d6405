#include "absl/strings/str_cat.h"
#include "allocator/base/status_macros.h"
#include "allocator/offline/harmony/schedule_checker.h"

namespace thimble::harmony {

// Gradients are summed over all lanes once. `ready` becomes the end of the sum or, with one lane,
// of the backward.
absl::Status ScheduleChecker::Summed(int lane, int t, int layer, double& ready) const {
  ready = index_.ComputedAt(lane, t, layer, 0, plan_.share());
  if (index_.lanes() == 1) return absl::OkStatus();
  const int gpu = index_.GpuOf(lane, t);
  const ActionIndex::Actions sums =
      index_.Find(gpu, t, Kind::kReduce, {layer, layer}, 0, plan_.share());
  if (sums.size() != 1) {
    return Wrong(absl::StrCat("the gradient of layer ", layer, " is summed ", sums.size(),
                              " times on GPU ", gpu));
  }
  for (int other = 0; other < index_.lanes(); ++other) {
    const double computed = index_.ComputedAt(other, t, layer, 0, plan_.share());
    if (computed > sums[0]->begin + kSlackSeconds) return Late(*sums[0], "a gradient", computed);
  }
  ready = sums[0]->end;
  return absl::OkStatus();
}

// The parts of a resident layer that other lanes update come to this one.
absl::Status ScheduleChecker::Gathered(int lane, int t, int layer) const {
  if (index_.lanes() == 1) return absl::OkStatus();
  const int gpu = index_.GpuOf(lane, t);
  const ActionIndex::Actions gathers =
      index_.Find(gpu, t, Kind::kGather, {layer, layer}, 0, plan_.share());
  if (gathers.size() != 1) {
    return Wrong(absl::StrCat("the weights of layer ", layer, " are gathered ", gathers.size(),
                              " times on GPU ", gpu));
  }
  for (int other = 0; other < index_.lanes(); ++other) {
    for (const Action* update :
         index_.Find(other, t, Kind::kUpdate, {layer, layer}, 0, plan_.share())) {
      if (update->end > gathers[0]->begin + kSlackSeconds) {
        return Late(*gathers[0], "an update", update->end);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status ScheduleChecker::Gradient(int lane, int t, int layer) const {
  const double part = IsThimble() ? 1.0 / index_.lanes() : 1;
  const int gpu = index_.GpuOf(lane, t);
  const Pack one = {layer, layer};
  const bool is_resident = plan_.tasks[t].is_resident;
  const ActionIndex::Actions outs = index_.Find(gpu, t, Kind::kGradientOut, one, 0, plan_.share());
  const ActionIndex::Actions updates = index_.Find(gpu, t, Kind::kUpdate, one, 0, plan_.share());
  if (outs.size() != (is_resident ? 0 : 1) || updates.size() != 1) {
    return Wrong(absl::StrCat("the gradient of layer ", layer, " leaves GPU ", gpu, " ",
                              outs.size(), " times and is applied ", updates.size(), " times"));
  }
  double ready = 0;
  THIMBLE_RETURN_IF_ERROR(Summed(lane, t, layer, ready));
  const Action& update = *updates[0];
  if (is_resident) {
    if (ready < 0 || ready > update.begin + kSlackSeconds) return Late(update, "it", ready);
    const double seconds = server_.UpdateSeconds(costs_.WeightBytes(update.layers) * part);
    if (update.stream != Stream::kCompute || IsFar(update.end - update.begin, seconds)) {
      return Wrong(absl::StrCat(ActionIndex::Name(update), " takes ", update.end - update.begin,
                                " s, not ", seconds, " of the GPU"));
    }
    return Gathered(lane, t, layer);
  }
  const Action& out = *outs[0];
  if (ready < 0 || ready > out.begin + kSlackSeconds) return Late(out, "it", ready);
  if (update.begin < out.end - kSlackSeconds) return Late(update, "the gradient", out.end);
  if (IsFar(out.bytes, costs_.WeightBytes(out.layers) * part)) {
    return Wrong(absl::StrCat(ActionIndex::Name(out), " has ", out.bytes, " bytes"));
  }
  return absl::OkStatus();
}

absl::Status ScheduleChecker::Gradients() const {
  for (int lane = 0; lane < index_.lanes(); ++lane) {
    for (int t = fused_; t < static_cast<int>(plan_.tasks.size()); ++t) {
      const Pack pack = plan_.tasks[t].pack;
      for (int layer = pack.first; layer <= pack.last; ++layer) {
        THIMBLE_RETURN_IF_ERROR(Gradient(lane, t, layer));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace thimble::harmony
