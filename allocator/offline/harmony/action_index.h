// Finds actions of a schedule, for the validator.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "allocator/offline/harmony/costs.h"
#include "allocator/offline/harmony/schedule.h"

namespace thimble::harmony {

// Tolerance of comparisons: times are long sums.
inline constexpr double kSlackSeconds = 1e-9;

class ActionIndex {
 public:
  explicit ActionIndex(const Schedule& schedule);

  const Schedule& schedule() const { return schedule_; }
  const Plan& plan() const { return schedule_.plan; }
  const Task& task(int t) const { return plan().tasks[t]; }
  bool is_pipeline() const { return plan().mode == Mode::kPipeline; }
  // dp has a lane for each GPU, pp one for all.
  int lanes() const { return is_pipeline() ? 1 : plan().gpus; }
  int GpuOf(int lane, int t) const { return is_pipeline() ? task(t).gpu : lane; }
  // The tasks of a GPU, in order.
  const std::vector<int>& TasksOf(int gpu) const { return tasks_[gpu]; }

  using Actions = std::vector<const Action*>;
  // Sorted by begin.
  const Actions& Find(int gpu, int t, Kind kind) const;
  // Of these, those that overlap `layers` and samples [first, end).
  Actions Find(int gpu, int t, Kind kind, Pack layers, int first, int end) const;

  // When task `t` has computed layer `layer` for samples [first, end): kForward for forward tasks,
  // kBackward for backward tasks. Negative if some samples are missing.
  double ComputedAt(int lane, int t, int layer, int first, int end) const;
  static std::string Name(const Action& action);

 private:
  const Schedule& schedule_;
  std::map<std::tuple<int, int, Kind>, Actions> actions_;
  std::vector<std::vector<int>> tasks_;
  const Actions none_;
};

absl::Status Wrong(const std::string& what);

// Whether the actions cover samples [first, end). Duplicates count once.
bool Cover(const ActionIndex::Actions& actions, int first, int end);

// The peak bytes in memory by GPU, from the actions alone.
absl::Status CheckMemory(const Costs& costs, const ActionIndex& index, double memory_bytes);

}  // namespace thimble::harmony
