#include "allocator/offline/harmony/validator.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/base/status_macros.h"
#include "allocator/offline/harmony/schedule_checker.h"

namespace thimble::harmony {

absl::Status ScheduleChecker::Actions() const {
  for (const Action& action : schedule_.actions) {
    if (action.gpu < 0 || action.gpu >= plan_.gpus || action.task < 0 ||
        action.task >= static_cast<int>(plan_.tasks.size()) || !(action.begin >= 0) ||
        !(action.end >= action.begin) || !(action.bytes >= 0)) {
      return Wrong(absl::StrCat(ActionIndex::Name(action), " from ", action.begin, " to ",
                                action.end, " s is not a valid action"));
    }
  }
  return absl::OkStatus();
}

absl::Status ScheduleChecker::Streams() const {
  std::map<std::pair<int, Stream>, std::vector<const Action*>> streams;
  for (const Action& action : schedule_.actions)
    streams[{action.gpu, action.stream}].push_back(&action);
  for (auto& [key, actions] : streams) {
    std::sort(actions.begin(), actions.end(), [](const Action* a, const Action* b) {
      return a->begin < b->begin || (a->begin == b->begin && a->end < b->end);
    });
    for (std::size_t i = 1; i < actions.size(); ++i) {
      if (actions[i]->begin < actions[i - 1]->end - kSlackSeconds) {
        return Wrong(absl::StrCat(ActionIndex::Name(*actions[i]), " begins at ", actions[i]->begin,
                                  " s, while the stream is busy until ", actions[i - 1]->end,
                                  " with ", ActionIndex::Name(*actions[i - 1])));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status ScheduleChecker::Sums() const {
  Schedule again;
  again.plan = plan_;
  again.actions = schedule_.actions;
  AddUp(again);
  const double pairs[][2] = {{again.seconds, schedule_.seconds},
                             {again.in_bytes, schedule_.in_bytes},
                             {again.out_bytes, schedule_.out_bytes},
                             {again.peer_bytes, schedule_.peer_bytes},
                             {again.compute_fraction, schedule_.compute_fraction}};
  for (const auto& [is, claimed] : pairs) {
    if (IsFar(is, claimed)) {
      return Wrong(
          absl::StrCat("the schedule claims ", claimed, " where its actions come to ", is));
    }
  }
  return absl::OkStatus();
}

absl::Status ValidateSchedule(const Costs& costs, const Server& server, const Schedule& schedule) {
  THIMBLE_RETURN_IF_ERROR(CheckPlan(costs, server, schedule.plan));
  const ScheduleChecker checker(costs, server, schedule);
  THIMBLE_RETURN_IF_ERROR(checker.Actions());
  THIMBLE_RETURN_IF_ERROR(checker.Streams());
  THIMBLE_RETURN_IF_ERROR(checker.Tasks());
  THIMBLE_RETURN_IF_ERROR(checker.Gradients());
  THIMBLE_RETURN_IF_ERROR(checker.Sums());
  if (schedule.plan.rules == Rules::kThimble) {
    THIMBLE_RETURN_IF_ERROR(checker.Links());
    return CheckMemory(costs, ActionIndex(schedule), server.memory_bytes);
  }
  for (const Task& task : schedule.plan.tasks) {
    // Packers without addx do not count the input of a pack.
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
