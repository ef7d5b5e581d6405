#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/base/status_macros.h"
#include "allocator/offline/harmony/schedule_checker.h"

namespace thimble::harmony {

absl::Status ScheduleChecker::Chain(int lane, int t, Kind kind, Pack layers, int first, int end,
                                    double& time) const {
  const bool is_down = kind == Kind::kBackward;
  int next = is_down ? layers.last : layers.first;
  for (const Action* action : index_.Find(index_.GpuOf(lane, t), t, kind, layers, first, end)) {
    const int edge = is_down ? action->layers.last : action->layers.first;
    const int far = is_down ? action->layers.first : action->layers.last;
    if (action->first_sample != first || action->end_sample != end || edge != next ||
        far < layers.first || far > layers.last || action->begin < time - kSlackSeconds) {
      return Wrong(absl::StrCat(ActionIndex::Name(*action), " at ", action->begin,
                                " s is out of order: layer ", next, " is next at ", time));
    }
    const int size = end - first;
    const double seconds = is_down ? costs_.BackwardSeconds(size, action->layers)
                                   : costs_.Seconds(Pass::kForward, size, action->layers);
    if (IsFar(action->end - action->begin, seconds)) {
      return Wrong(absl::StrCat(ActionIndex::Name(*action), " takes ", action->end - action->begin,
                                " s, not ", seconds));
    }
    THIMBLE_RETURN_IF_ERROR(Weights(*action));
    time = action->end;
    next = is_down ? far - 1 : far + 1;
  }
  if (next == (is_down ? layers.first - 1 : layers.last + 1)) return absl::OkStatus();
  return Wrong(absl::StrCat("layer ", next, " has no ", NameOf(kind), " in task ", t,
                            " for samples ", first, " to ", end - 1));
}

absl::Status ScheduleChecker::Forward(int lane, int t, int first, int end) const {
  const Pack pack = plan_.tasks[t].pack;
  double time = 0;
  THIMBLE_RETURN_IF_ERROR(Chain(lane, t, Kind::kForward, pack, first, end, time));
  const Action& user =
      *index_.Find(index_.GpuOf(lane, t), t, Kind::kForward, pack, first, end).front();
  return pack.first == 0 ? Stash(lane, t, 0, user) : Boundary(lane, t, pack.first, user);
}

absl::Status ScheduleChecker::Backward(int lane, int t, int first, int end) const {
  const Task& task = plan_.tasks[t];
  const int gpu = index_.GpuOf(lane, t);
  double time = 0;
  for (const Segment& segment : SegmentsDown(task)) {
    const Pack layers = segment.layers;
    if (segment.keep == Keep::kNothing) {
      THIMBLE_RETURN_IF_ERROR(Chain(lane, t, Kind::kRecompute, layers, first, end, time));
      const Action& user = *index_.Find(gpu, t, Kind::kRecompute, layers, first, end).front();
      THIMBLE_RETURN_IF_ERROR(IsLater(t) || layers.first == 0
                                  ? Stash(lane, t, layers.first, user)
                                  : Boundary(lane, t, layers.first, user));
    }
    THIMBLE_RETURN_IF_ERROR(Chain(lane, t, Kind::kBackward, layers, first, end, time));
    const Action& user = *index_.Find(gpu, t, Kind::kBackward, layers, first, end).front();
    if (IsLater(t) && layers.last == task.pack.last) {
      THIMBLE_RETURN_IF_ERROR(Boundary(lane, t, task.pack.last + 1, user));
    }
    if (segment.keep != Keep::kNothing) {
      THIMBLE_RETURN_IF_ERROR(Kept(lane, t, segment, user));
    }
  }
  return absl::OkStatus();
}

absl::Status ScheduleChecker::Tasks() const {
  for (int lane = 0; lane < index_.lanes(); ++lane) {
    for (int t = 0; t < static_cast<int>(plan_.tasks.size()); ++t) {
      const std::vector<int> bounds = SampleBounds(plan_.tasks[t].microbatches);
      for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
        THIMBLE_RETURN_IF_ERROR(plan_.tasks[t].is_backward()
                                    ? Backward(lane, t, bounds[i], bounds[i + 1])
                                    : Forward(lane, t, bounds[i], bounds[i + 1]));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace thimble::harmony
