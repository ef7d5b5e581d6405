// Keeps a limit at the price of time. An op over the limit waits until idle blocks have left, and
// an op whose block comes back too late waits for it.
//
// Every round plans the step with the pauses found so far, as if they were ops. If an op is still
// over the limit, the block that needs the least extra time to be gone then gets that time. At the
// end, all pauses shrink together as far as the limit allows.
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

  // A schedule within `limit` whose pauses sum to at most `most`. nullopt if none is found within
  // `max_work`.
  std::optional<Schedule> Keep(const Rule& rule, std::int64_t limit, Ns most,
                               std::uint64_t max_work);

  std::uint64_t work() const { return work_; }

 private:
  // Plans with these pauses. If the limit is not kept, adds the pause that is missing most.
  std::optional<Schedule> Try(const Rule& rule, std::int64_t limit, std::vector<Ns>* pauses);
  bool AddWhatIsMissing(const ScheduleBuilder& builder, std::int32_t op, std::int64_t limit,
                        const std::vector<Window>& windows, const PausedStep& paused,
                        std::vector<Ns>* pauses) const;

  const Problem& problem_;
  const Machine& machine_;
  std::uint64_t work_ = 0;
};

}  // namespace thimble::schedule
