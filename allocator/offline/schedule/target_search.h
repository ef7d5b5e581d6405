// Searches for a schedule within a limit: while an op is over the limit, the block that helps most
// leaves. Every rule is a guess at what helps most. The right one depends on the model, so the
// planner tries them all.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "allocator/offline/schedule/schedule_builder.h"
#include "allocator/offline/schedule/windows.h"

namespace thimble::schedule {

struct Rule {
  // Which op over the limit comes next.
  enum class Next : std::uint8_t { kWorst, kFirst } next = Next::kWorst;
  // Which block that could be gone then is best: the one with the largest
  enum class By : std::uint8_t {
    kArea,    // bytes x duration of its absence
    kTime,    // duration of its absence
    kExcess,  // bytes over the limit that it removes, summed over ops, per nanosecond of copying
    kLoad,    // the same, weighted by the durations of the ops
  } by = By::kArea;

  std::string Name() const;
};

// The cheap ones first.
std::array<Rule, 8> AllRules();

class TargetSearch {
 public:
  // All must outlive it; `windows` is FindWindows(problem).
  TargetSearch(const Problem& problem, const Machine& machine, const Timeline& timeline,
               const std::vector<Window>& windows);

  // By window: its weight in units of 1 / kPlain.
  using Weights = std::vector<std::uint32_t>;
  static constexpr std::uint32_t kPlain = 1024;

  // Adds swaps until no op is over `limit`, or until no swap helps such an op. Without `weights`
  // all windows count the same.
  ScheduleBuilder Run(const Rule& rule, std::int64_t limit, const Weights& weights = {});

  // The op over the limit that comes next; past the last op if there is none.
  std::int32_t NextOp(const Rule& rule, std::int64_t limit,
                      const std::vector<std::int64_t>& left) const;

  std::uint64_t work() const { return work_; }  // done so far, in units of a few nanoseconds

 private:
  using Wide = __int128;

  std::optional<Swap> BestFor(std::int32_t op, const Rule& rule, std::int64_t limit,
                              const Weights& weights, const ScheduleBuilder& builder);
  // Bytes over the limit that the swap removes, summed over ops.
  Wide Excess(const Swap& swap, bool weighted, std::int64_t limit,
              const std::vector<std::int64_t>& left);
  Wide Evaluate(const Rule& rule, const Swap& swap, std::int64_t limit,
                const std::vector<std::int64_t>& left);

  const Problem& problem_;
  const Machine& machine_;
  const Timeline& timeline_;
  const std::vector<Window>& windows_;
  std::vector<Ns> op_weights_;  // for Rule::By::kLoad
  // The last known value of each window, which never grows. Negative: it is used, or the engines
  // have no room for it.
  std::vector<Wide> most_;
  std::uint64_t work_ = 0;
};

}  // namespace thimble::schedule
