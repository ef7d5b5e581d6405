#include "allocator/offline/schedule/validator.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/base/status_macros.h"

namespace thimble::schedule {
namespace {

constexpr std::int64_t kSteps = 4;  // a window spans fewer

class Checker {
 public:
  Checker(const Problem& problem, const Machine& machine, const Schedule& schedule)
      : problem_(problem),
        machine_(machine),
        schedule_(schedule),
        count_(static_cast<std::int64_t>(problem.ops.size())),
        step_(schedule.step_ns) {}

  absl::Status Ops() const;
  absl::Status Touches() const;
  absl::Status Engine(bool out) const;
  absl::Status Residency() const;
  absl::Status Sums() const;

 private:
  // Of op `op` of any step.
  Ns Begin(std::int64_t op) const { return schedule_.starts[op % count_] + op / count_ * step_; }
  Ns End(std::int64_t op) const { return Begin(op) + problem_.ops[op % count_].ns; }
  std::string Name(std::int64_t op) const {
    return absl::StrCat("op ", op, " ('", problem_.ops[op % count_].name, "')");
  }
  static absl::Status Wrong(const std::string& what) { return absl::InternalError(what); }

  const Block& BlockOf(const Swap& swap) const { return problem_.blocks[swap.block]; }
  Ns OutEnd(const Swap& swap) const { return swap.out_ns + OutNs(machine_, BlockOf(swap).bytes); }
  Ns InEnd(const Swap& swap) const {
    return swap.returns ? swap.in_ns + InNs(machine_, BlockOf(swap).bytes) : swap.in_ns;
  }
  Ns Gone(const Swap& swap) const { return OutEnd(swap) + machine_.run_ahead_ns; }

  absl::Status Fields(const Swap& swap) const;
  // Checks that the block is not touched between the start of its copy out and the end of its copy
  // in. `shift` moves ops to the lifetime of this swap.
  absl::Status TouchesOf(const Swap& swap) const;
  absl::Status TouchesOf(const Swap& swap, std::int64_t shift) const;

  const Problem& problem_;
  const Machine& machine_;
  const Schedule& schedule_;
  const std::int64_t count_;
  const Ns step_;
};

absl::Status Checker::Ops() const {
  if (static_cast<std::int64_t>(schedule_.starts.size()) != count_) {
    return Wrong(absl::StrCat(schedule_.starts.size(), " starts for ", count_, " ops"));
  }
  if (schedule_.starts[0] < 0 || step_ <= 0) {
    return Wrong(absl::StrCat("the first op begins at ", schedule_.starts[0], " ns of ", step_));
  }
  for (std::int64_t op = 0; op < count_; ++op) {
    if (Begin(op + 1) < End(op)) {
      return Wrong(absl::StrCat(Name(op + 1), " begins at ", Begin(op + 1), " ns, before ",
                                Name(op), " has ended at ", End(op)));
    }
  }
  return absl::OkStatus();
}

absl::Status Checker::Fields(const Swap& swap) const {
  if (swap.block < 0 || swap.block >= static_cast<std::int64_t>(problem_.blocks.size())) {
    return Wrong(absl::StrCat("there is no block ", swap.block));
  }
  const std::string who = absl::StrCat("block ", swap.block);
  if (swap.after < 0 || swap.after >= count_ || swap.before <= swap.after ||
      swap.before >= (kSteps - 1) * count_) {
    return Wrong(absl::StrCat(who, " leaves after op ", swap.after, " and is back before op ",
                              swap.before, ": that is not a window"));
  }
  if (swap.out_ns < End(swap.after)) {
    return Wrong(absl::StrCat(who, " leaves at ", swap.out_ns, " ns, before ", Name(swap.after),
                              " has ended at ", End(swap.after)));
  }
  const Ns back = swap.returns ? Begin(swap.before) : End(swap.before - 1);
  if (InEnd(swap) > back) {
    return Wrong(absl::StrCat(who, " is back at ", InEnd(swap), " ns, after ", Name(swap.before),
                              " needs it at ", back));
  }
  if (swap.in_ns < Gone(swap)) {
    return Wrong(
        absl::StrCat(who, " comes back at ", swap.in_ns, " ns, before it is gone at ", Gone(swap)));
  }
  if (swap.gone_from <= swap.after || swap.gone_until > swap.before ||
      swap.gone_from > swap.gone_until || Begin(swap.gone_from) < Gone(swap) ||
      End(swap.gone_until - 1) > swap.in_ns) {
    return Wrong(absl::StrCat(who, " is not gone for all of the ops [", swap.gone_from, ", ",
                              swap.gone_until, ")"));
  }
  return absl::OkStatus();
}

// A block that is allocated anew in every step may have several touches by the same op. One of them
// must fit.
absl::Status Checker::TouchesOf(const Swap& swap) const {
  absl::Status status = Wrong(absl::StrCat(Name(swap.after), ", after which block ", swap.block,
                                           " leaves, does not touch it"));
  for (const std::int32_t touch : BlockOf(swap).touches) {
    if (touch % count_ != swap.after) continue;
    status = TouchesOf(swap, swap.after - touch);
    if (status.ok()) break;
  }
  return status;
}

absl::Status Checker::TouchesOf(const Swap& swap, std::int64_t shift) const {
  const Block& block = BlockOf(swap);
  bool is_due = false;  // `before` is a touch
  for (const std::int32_t touch : block.touches) {
    for (std::int64_t step = 0; step < (block.is_cyclic ? kSteps : 1); ++step) {
      const std::int64_t op = touch + shift + step * count_;
      if (op < 0) continue;  // ended before the step begins
      if (Begin(op) < InEnd(swap) && End(op) > swap.out_ns) {
        return Wrong(absl::StrCat(Name(op), " touches block ", swap.block, " at ", Begin(op),
                                  " ns, while it is away from ", swap.out_ns, " to ", InEnd(swap)));
      }
      is_due = is_due || op == swap.before;
    }
  }
  if (swap.returns && !is_due) {
    return Wrong(absl::StrCat(Name(swap.before), ", before which block ", swap.block,
                              " is back, does not touch it"));
  }
  const std::int64_t dies = block.dies == Block::kLives ? -1 : block.dies + shift;
  if (!swap.returns && (swap.before > dies || block.touches.back() + shift > swap.after)) {
    return Wrong(absl::StrCat("block ", swap.block, " never comes back, but is needed after ",
                              Name(swap.after)));
  }
  return absl::OkStatus();
}

absl::Status Checker::Touches() const {
  for (const Swap& swap : schedule_.swaps) {
    THIMBLE_RETURN_IF_ERROR(Fields(swap));
    THIMBLE_RETURN_IF_ERROR(TouchesOf(swap));
  }
  return absl::OkStatus();
}

absl::Status Checker::Engine(bool out) const {
  const char* const name = out ? "out" : "in";
  std::vector<std::pair<Ns, Ns>> copies;  // begin within the step, length
  for (const Swap& swap : schedule_.swaps) {
    if (!out && !swap.returns) continue;
    const Ns begin = out ? swap.out_ns : swap.in_ns;
    copies.emplace_back(begin % step_, (out ? OutEnd(swap) : InEnd(swap)) - begin);
  }
  std::sort(copies.begin(), copies.end());
  for (std::size_t i = 0; i < copies.size(); ++i) {
    const auto [begin, length] = copies[i];
    const bool is_last = i + 1 == copies.size();
    const Ns next = is_last ? copies[0].first + step_ : copies[i + 1].first;
    if (begin + length > next) {
      return Wrong(absl::StrCat("the copy ", name, " that begins at ", begin,
                                " ns of a step is not done when the next one begins at ", next));
    }
  }
  return absl::OkStatus();
}

// Sweeps through one step of the circle. Every change of the bytes on the device is an event.
absl::Status Checker::Residency() const {
  std::vector<std::pair<Ns, std::int64_t>> events;  // time within the step, change
  std::int64_t bytes = problem_.ops.back().live_bytes;
  for (std::int64_t op = 0; op < count_; ++op) {
    // It waits from the end of the op before it, then runs.
    const Op& before = problem_.ops[(op + count_ - 1) % count_];
    const Ns ended = op == 0 ? End(count_ - 1) : End(op - 1);
    const std::int64_t waiting = std::min(problem_.ops[op].waiting_bytes, before.live_bytes);
    events.emplace_back(ended % step_, waiting - before.live_bytes);
    events.emplace_back(Begin(op) % step_, problem_.ops[op].live_bytes - waiting);
    if (op == 0 && ended < step_) bytes = waiting;  // the step begins with a pause
  }
  for (const Swap& swap : schedule_.swaps) {
    const std::int64_t size = BlockOf(swap).bytes;
    const Ns gone = Gone(swap);
    events.emplace_back(gone % step_, -size);
    events.emplace_back(swap.in_ns % step_, size);
    bytes -= size * (swap.in_ns / step_ - gone / step_);  // steps that begin without it
  }
  std::sort(events.begin(), events.end());
  for (std::size_t i = 0; i < events.size(); ++i) {
    bytes += events[i].second;
    const bool is_last_of_time = i + 1 == events.size() || events[i + 1].first > events[i].first;
    if (is_last_of_time && bytes > schedule_.peak_bytes) {
      return Wrong(absl::StrCat(bytes, " bytes are on the device at ", events[i].first,
                                " ns of a step, more than ", schedule_.peak_bytes));
    }
  }
  return absl::OkStatus();
}

absl::Status Checker::Sums() const {
  std::int64_t out = 0;
  std::int64_t in = 0;
  for (const Swap& swap : schedule_.swaps) {
    out += BlockOf(swap).bytes;
    in += swap.returns ? BlockOf(swap).bytes : 0;
  }
  if (out != schedule_.bytes_out || in != schedule_.bytes_in) {
    return Wrong(absl::StrCat("the schedule copies ", out, " bytes out and ", in,
                              " in, but claims ", schedule_.bytes_out, " and ",
                              schedule_.bytes_in));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateSchedule(const Problem& problem, const Machine& machine,
                              const Schedule& schedule) {
  const Checker checker(problem, machine, schedule);
  THIMBLE_RETURN_IF_ERROR(checker.Ops());
  THIMBLE_RETURN_IF_ERROR(checker.Touches());
  THIMBLE_RETURN_IF_ERROR(checker.Engine(/*out=*/true));
  THIMBLE_RETURN_IF_ERROR(checker.Engine(/*out=*/false));
  THIMBLE_RETURN_IF_ERROR(checker.Residency());
  return checker.Sums();
}

}  // namespace thimble::schedule
