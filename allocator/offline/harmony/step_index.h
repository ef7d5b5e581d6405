// Finds steps of a schedule: for the validator.
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

// Slack of comparisons: times are sums of many.
inline constexpr double kSlackSeconds = 1e-9;

class StepIndex {
 public:
  explicit StepIndex(const Schedule& schedule);

  const Schedule& schedule() const { return schedule_; }
  const Plan& plan() const { return schedule_.plan; }
  const Task& task(int t) const { return plan().tasks[t]; }
  bool is_pipeline() const { return plan().mode == Mode::kPipeline; }
  // dp has a lane for every GPU, pp one for all.
  int lanes() const { return is_pipeline() ? 1 : plan().gpus; }
  int GpuOf(int lane, int t) const { return is_pipeline() ? task(t).gpu : lane; }
  // Tasks of a GPU in order.
  const std::vector<int>& TasksOf(int gpu) const { return tasks_[gpu]; }

  using Steps = std::vector<const Step*>;
  // By begin.
  const Steps& Find(int gpu, int t, Kind kind) const;
  // Of these, those that overlap `layers` and samples [first, end).
  Steps Find(int gpu, int t, Kind kind, Pack layers, int first, int end) const;

  // The end of what computes layer `layer` for samples [first, end) in task `t`: forward tasks
  // kForward, backward tasks kBackward. Negative if some samples are missing.
  double ComputedAt(int lane, int t, int layer, int first, int end) const;
  static std::string Name(const Step& step);

 private:
  const Schedule& schedule_;
  std::map<std::tuple<int, int, Kind>, Steps> steps_;
  std::vector<std::vector<int>> tasks_;
  const Steps none_;
};

absl::Status Wrong(const std::string& what);

// Are samples [first, end) all in the steps? Those that are there twice count once.
bool Cover(const StepIndex::Steps& steps, int first, int end);

// The most that is in memory, by GPU: from the steps alone.
absl::Status CheckMemory(const Costs& costs, const StepIndex& index, double memory_bytes);

}  // namespace thimble::harmony
