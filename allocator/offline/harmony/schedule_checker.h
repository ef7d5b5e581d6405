// The validator's view of one schedule, with one function for each promise of validator.h.
//
//   validator.cc            single actions, streams and sums; runs all checks in order
//   validator_plan.cc       the plan alone
//   validator_tasks.cc      every layer is computed for every sample, in order
//   validator_inputs.cc     what an action needs is there when it begins
//   validator_gradients.cc  gradients leave once and are applied once
//   validator_links.cc      no link exceeds its capacity
//   validator_memory.cc     what is in memory
//
// Private to allocator/offline/harmony.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/status/status.h"
#include "allocator/offline/harmony/action_index.h"
#include "allocator/offline/harmony/costs.h"
#include "allocator/offline/harmony/schedule.h"
#include "allocator/offline/harmony/server.h"

namespace thimble::harmony {

inline bool IsFar(double a, double b) { return std::abs(a - b) > 1e-6 * std::max({1.0, a, b}); }

// Every layer is in the plan once forward and once backward, with all samples. Check this first:
// the other checks rely on it.
[[nodiscard]] absl::Status CheckPlan(const Costs& costs, const Server& server, const Plan& plan);

class ScheduleChecker {
 public:
  // The arguments must outlive it.
  ScheduleChecker(const Costs& costs, const Server& server, const Schedule& schedule)
      : costs_(costs),
        server_(server),
        schedule_(schedule),
        plan_(schedule.plan),
        index_(schedule),
        fused_(plan_.fused()) {}

  [[nodiscard]] absl::Status Actions() const;
  [[nodiscard]] absl::Status Streams() const;
  [[nodiscard]] absl::Status Tasks() const;
  [[nodiscard]] absl::Status Gradients() const;
  [[nodiscard]] absl::Status Links() const;
  [[nodiscard]] absl::Status Sums() const;

 private:
  bool IsLater(int t) const { return t > fused_; }
  bool IsThimble() const { return plan_.rules == Rules::kThimble; }

  absl::Status Forward(int lane, int t, int first, int end) const;
  absl::Status Backward(int lane, int t, int first, int end) const;
  // Actions of `kind` run through `layers` one after the other; `time` moves to the end of the
  // last.
  absl::Status Chain(int lane, int t, Kind kind, Pack layers, int first, int end,
                     double& time) const;
  absl::Status Weights(const Action& action) const;
  absl::Status Boundary(int lane, int t, int layer, const Action& user) const;
  absl::Status Stash(int lane, int t, int layer, const Action& user) const;
  absl::Status Kept(int lane, int t, const Segment& segment, const Action& user) const;
  absl::Status Gradient(int lane, int t, int layer) const;
  absl::Status Summed(int lane, int t, int layer, double& ready) const;
  absl::Status Gathered(int lane, int t, int layer) const;
  // The error that `user` begins before `what` is there; negative: it never is.
  static absl::Status Late(const Action& user, const std::string& what, double there);

  const Costs& costs_;
  const Server& server_;
  const Schedule& schedule_;
  const Plan& plan_;
  const ActionIndex index_;
  const int fused_;
};

}  // namespace thimble::harmony
