#include <algorithm>

#include "absl/strings/str_cat.h"
#include "allocator/offline/harmony/schedule_checker.h"

namespace thimble::harmony {

absl::Status CheckPlan(const Costs& costs, const Server& server, const Plan& plan) {
  if (plan.gpus != server.gpu_count()) {
    return Wrong(absl::StrCat("the plan is for ", plan.gpus, " GPUs of ", server.gpu_count()));
  }
  if (plan.mode == Mode::kDataParallel && plan.batch % plan.gpus != 0) {
    return Wrong(absl::StrCat(plan.batch, " samples cannot be split among ", plan.gpus, " GPUs"));
  }
  int next = 0;                     // layer that the next forward pack begins with
  int above = costs.layer_count();  // layer before which the next backward pack ends
  bool is_backward = false;
  for (const Task& task : plan.tasks) {
    const bool is_first_backward = task.is_backward() && !is_backward;
    if (is_backward && !task.is_backward()) return Wrong("a forward task follows a backward one");
    is_backward = task.is_backward();
    const bool fits = is_backward ? task.pack.last == above - 1 : task.pack.first == next;
    if (!fits || task.pack.first > task.pack.last || task.pack.first < 0 ||
        task.pack.last >= costs.layer_count() || (is_first_backward && task.pack.first != next)) {
      return Wrong(absl::StrCat("the pack of layers ", task.pack.first, " to ", task.pack.last,
                                " does not follow the pack before it"));
    }
    next = task.pack.last + 1;
    above = is_backward ? task.pack.first : above;
    int samples = 0;
    for (const int size : task.microbatches) {
      if (size < 1 || size > costs.largest(task.pass)) {
        return Wrong(absl::StrCat("a microbatch has ", size, " samples"));
      }
      samples += size;
    }
    if (samples != plan.share()) {
      return Wrong(absl::StrCat("layers ", task.pack.first, " to ", task.pack.last, " see ",
                                samples, " samples of ", plan.share()));
    }
    const bool has_gpu = plan.mode == Mode::kPipeline;
    if (has_gpu ? task.gpu < 0 || task.gpu >= plan.gpus : task.gpu != kEveryGpu) {
      return Wrong(absl::StrCat("there is no GPU ", task.gpu));
    }
    int before = task.pack.first - 1;
    for (const int first : task.segments) {
      if (first <= before || first > task.pack.last ||
          (before < task.pack.first && first != task.pack.first)) {
        return Wrong(absl::StrCat("a segment begins with layer ", first));
      }
      before = first;
    }
    const bool is_later = is_backward && !is_first_backward;
    const std::size_t segments = std::max<std::size_t>(1, task.segments.size());
    if ((is_first_backward && segments > 1) ||
        (!task.keep.empty() && (!is_later || task.keep.size() != segments))) {
      return Wrong(absl::StrCat("the pack of layers ", task.pack.first, " to ", task.pack.last,
                                " has segments, or keeps some, that it cannot have"));
    }
  }
  if (!is_backward || above != 0) return Wrong("layer 0 has no backward");
  for (const Task& task : plan.tasks) {
    if (!task.is_resident) continue;
    for (const Task& other : plan.tasks) {
      if (!task.is_backward() || (Overlap(task.pack, other.pack) && other.gpu != task.gpu)) {
        return Wrong(absl::StrCat("the pack of layers ", task.pack.first, " to ", task.pack.last,
                                  " cannot be resident"));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace thimble::harmony
