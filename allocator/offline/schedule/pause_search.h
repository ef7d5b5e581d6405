// Keeps a limit at the price of time: where an op would have too much, it waits, until what is idle
// has left; and where a block comes back too late, the op that needs it waits.
//
// Every round plans the step with the pauses it has so far, as if they were ops. If an op is still
// over the limit, the block that would be gone then for the least time gets the time it lacks. At
// the end, all pauses shrink together as far as the limit is still kept.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "allocator/offline/schedule/machine.h"
#include "allocator/offline/schedule/paused_step.h"
#include "allocator/offline/schedule/problem.h"
#include "allocator/offline/schedule/schedule.h"
#include "allocator/offline/schedule/target_search.h"

namespace thimble::schedule {

class PauseSearch {
 public:
  // Both must outlive it.
  PauseSearch(const Problem& problem, const Machine& machine)
      : problem_(problem), machine_(machine) {}

  // A schedule within `limit` whose pauses are `most` together or less. Nothing if none is found
  // before `max_work` is done.
  std::optional<Schedule> Keep(const Rule& rule, std::int64_t limit, Ns most,
                               std::uint64_t max_work);

  std::uint64_t work() const { return work_; }

 private:
  // With these pauses; if the limit is not kept, adds what is missing most to them.
  std::optional<Schedule> Try(const Rule& rule, std::int64_t limit, std::vector<Ns>* pauses);
  bool AddWhatIsMissing(const ScheduleBuilder& builder, std::int32_t op, std::int64_t limit,
                        const std::vector<Window>& windows, const PausedStep& paused,
                        std::vector<Ns>* pauses) const;

  const Problem& problem_;
  const Machine& machine_;
  std::uint64_t work_ = 0;
};

}  // namespace thimble::schedule
