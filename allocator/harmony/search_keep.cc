#include <vector>

#include "allocator/harmony/plan_search.h"

namespace thimble::harmony {
namespace {

// Whose forward is on its GPU, with its microbatches.
bool MayKeep(const Plan& plan, int task) {
  const Task& later = plan.tasks[task];
  for (int t = 0; t < plan.fused(); ++t) {
    const Task& one = plan.tasks[t];
    if (one.pack.last < later.pack.first || one.pack.first > later.pack.last) continue;
    if (one.gpu != later.gpu || one.microbatches != later.microbatches) return false;
  }
  return true;
}

void HalveSegments(Task& task) {
  std::vector<int> firsts;
  for (const Pack& segment : SegmentsDown(task)) {
    const int middle = (segment.first + segment.last + 1) / 2;
    if (middle > segment.first) firsts.push_back(middle);
    firsts.push_back(segment.first);
  }
  task.segments.assign(firsts.rbegin(), firsts.rend());
}

}  // namespace

Plan PlanSearch::Keep(const Candidate& best) {
  Plan plan = PlanOf(costs_, server_, best.shape, batch_);
  double cost = best.cost;
  const int tasks = static_cast<int>(plan.tasks.size());
  for (int by = 32; by > 0; by /= 2) {
    for (int t = plan.fused() + 1; t < tasks && !IsOver(budget_); ++t) {
      if (!MayKeep(plan, t)) continue;
      // On the GPU, on the host, and on the host with shorter segments, which leave room for more.
      for (const int way : {0, 1, 2}) {
        const bool on_host = way > 0;
        Plan other = plan;
        Task& task = other.tasks[t];
        if (task.kept_layers > 0 && task.kept_on_host != on_host) continue;
        task.kept_layers += by;
        task.kept_on_host = on_host;
        if (task.kept_layers > task.pack.last - task.pack.first + 1) continue;
        if (way == 2) HalveSegments(task);
        ++plans_;
        const double changed = CostOf(other);
        if (changed >= cost) continue;
        cost = changed;
        plan = other;
      }
    }
  }
  return plan;
}

}  // namespace thimble::harmony
