#include "allocator/offline/harmony/validator.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/base/status_macros.h"
#include "allocator/offline/harmony/schedule_checker.h"

namespace thimble::harmony {

absl::Status ScheduleChecker::Steps() const {
  for (const Step& step : schedule_.steps) {
    if (step.gpu < 0 || step.gpu >= plan_.gpus || step.task < 0 ||
        step.task >= static_cast<int>(plan_.tasks.size()) || !(step.begin >= 0) ||
        !(step.end >= step.begin) || !(step.bytes >= 0)) {
      return Wrong(absl::StrCat(StepIndex::Name(step), " from ", step.begin, " to ", step.end,
                                " s is no step"));
    }
  }
  return absl::OkStatus();
}

absl::Status ScheduleChecker::Streams() const {
  std::map<std::pair<int, Stream>, std::vector<const Step*>> streams;
  for (const Step& step : schedule_.steps) streams[{step.gpu, step.stream}].push_back(&step);
  for (auto& [key, steps] : streams) {
    std::sort(steps.begin(), steps.end(), [](const Step* a, const Step* b) {
      return a->begin < b->begin || (a->begin == b->begin && a->end < b->end);
    });
    for (std::size_t i = 1; i < steps.size(); ++i) {
      if (steps[i]->begin < steps[i - 1]->end - kSlackSeconds) {
        return Wrong(absl::StrCat(StepIndex::Name(*steps[i]), " begins at ", steps[i]->begin,
                                  " s, while the stream is busy until ", steps[i - 1]->end,
                                  " with ", StepIndex::Name(*steps[i - 1])));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status ScheduleChecker::Sums() const {
  Schedule again;
  again.plan = plan_;
  again.steps = schedule_.steps;
  AddUp(again);
  const double pairs[][2] = {{again.seconds, schedule_.seconds},
                             {again.in_bytes, schedule_.in_bytes},
                             {again.out_bytes, schedule_.out_bytes},
                             {again.peer_bytes, schedule_.peer_bytes},
                             {again.compute_fraction, schedule_.compute_fraction}};
  for (const auto& [is, claimed] : pairs) {
    if (IsFar(is, claimed)) {
      return Wrong(absl::StrCat("the schedule claims ", claimed, " where its steps come to ", is));
    }
  }
  return absl::OkStatus();
}

absl::Status ValidateSchedule(const Costs& costs, const Server& server, const Schedule& schedule) {
  THIMBLE_RETURN_IF_ERROR(CheckPlan(costs, server, schedule.plan));
  const ScheduleChecker checker(costs, server, schedule);
  THIMBLE_RETURN_IF_ERROR(checker.Steps());
  THIMBLE_RETURN_IF_ERROR(checker.Streams());
  THIMBLE_RETURN_IF_ERROR(checker.Tasks());
  THIMBLE_RETURN_IF_ERROR(checker.Gradients());
  THIMBLE_RETURN_IF_ERROR(checker.Sums());
  if (schedule.plan.rules == Rules::kThimble) {
    THIMBLE_RETURN_IF_ERROR(checker.Links());
    return CheckMemory(costs, StepIndex(schedule), server.memory_bytes);
  }
  for (const Task& task : schedule.plan.tasks) {
    // Packers without addx leave out the input of a pack.
    const int size = task.microbatches[0];
    const double bytes =
        costs.PeakBytes(task.pass, size, task.pack) - costs.InputBytes(size, task.pack.first);
    if (bytes > server.memory_bytes) {
      return Wrong(absl::StrCat("the pack of layers ", task.pack.first, " to ", task.pack.last,
                                " needs ", bytes, " bytes of ", server.memory_bytes));
    }
  }
  return absl::OkStatus();
}

}  // namespace thimble::harmony
