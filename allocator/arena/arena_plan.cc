// The part of Arena that has plans made, on a thread of its own, and kept in a file.
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/arena/arena.h"
#include "allocator/base/warn.h"
#include "allocator/plan/solver.h"
#include "allocator/plan/validator.h"

namespace thimble {
namespace {

// A thread of its own, and most plans are as low as can be long before.
constexpr double kPlanSeconds = 1;

}  // namespace

// Training goes on without a file, only later.
void Arena::LoadPlanFile() {
  absl::StatusOr<Learned> learned = ReadPlanFile(options_.plan_file);
  MutexLock lock(&mutex_);
  if (learned.ok() && learned->chunk_bytes != space_->chunk_bytes()) {
    learned = absl::InvalidArgumentError(absl::StrCat("'", options_.plan_file,
                                                      "' is for chunk:", learned->chunk_bytes,
                                                      ", not ", space_->chunk_bytes()));
  }
  if (learned.ok()) {
    space_->RestorePlans(*learned);
  } else if (!absl::IsNotFound(learned.status())) {
    Warn(absl::StrCat("plan_file: ", learned.status().message(),
                      ". It is not used, and will be replaced when a new plan is made."));
  }
}

void Arena::SavePlanFile(Learned learned, Bytes chunk_bytes) {
  learned.chunk_bytes = chunk_bytes;
  const absl::Status status = WritePlanFile(learned, options_.plan_file);
  if (status.ok() || std::exchange(warned_of_plan_file_, true)) return;
  Warn(absl::StrCat("plan_file: ", status.message(),
                    ". What this run learns may be lost; a file that was there stays."));
}

void Arena::DraftPlan() {
  std::optional<Planner::Draft> draft = space_->DraftPlan();
  if (!draft.has_value()) return;
  draft_ = *std::move(draft);
  if (!worker_.Wake()) space_->AdoptPlan(draft_, std::nullopt);
}

void Arena::Plan(const std::atomic<bool>& cancel) {
  Planner::Draft draft;
  Bytes chunk_bytes = 0;
  {
    MutexLock lock(&mutex_);
    draft = std::move(draft_);
    chunk_bytes = space_->chunk_bytes();
  }
  const plan::ConflictProblem problem = draft.ToProblem();
  const auto drop_if_wrong = [&problem](std::optional<plan::Plan>* plan) {
    if (plan->has_value() && !plan::ValidatePlan(problem, **plan).ok()) plan->reset();
  };
  std::optional<plan::Plan> plan;
  if (plan::CheckConflictProblem(problem).ok()) {
    plan = draft.Remembered();
    drop_if_wrong(&plan);
    if (!plan.has_value()) {
      plan::SolveOptions options;
      options.seconds = kPlanSeconds;
      options.cancel = &cancel;
      plan = plan::SolveConflicts(problem, options);
      drop_if_wrong(&plan);
    }
  }
  {
    MutexLock lock(&mutex_);
    space_->AdoptPlan(draft, plan);
  }
  if (plan.has_value() && !options_.plan_file.empty()) {
    SavePlanFile(draft.ToLearned(*plan), chunk_bytes);
  }
}

void Arena::ActivatePlan() {
  // What a stream may still use stays where it is.
  WaitForStreams().IgnoreError();
  // Another thread may have been faster meanwhile.
  if (space_->PlanIsDue()) space_->ActivatePlan();
}

}  // namespace thimble
