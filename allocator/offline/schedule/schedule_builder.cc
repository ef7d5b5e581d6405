#include "allocator/offline/schedule/schedule_builder.h"

#include <algorithm>
#include <utility>

namespace thimble::schedule {

ScheduleBuilder::ScheduleBuilder(const Problem& problem, const Machine& machine,
                                 const Timeline& timeline)
    : problem_(problem),
      machine_(machine),
      timeline_(timeline),
      out_(timeline.period()),
      in_(timeline.period()) {
  for (const Op& op : problem.ops) left_.push_back(op.live_bytes);
}

std::optional<Swap> ScheduleBuilder::Place(const Window& window) const {
  const std::int64_t bytes = problem_.blocks[window.block].bytes;
  const Ns out_ns = OutNs(machine_, bytes);
  const Ns in_ns = window.returns ? InNs(machine_, bytes) : 0;
  const Ns begin = timeline_.End(window.after);
  const Ns end = timeline_.Start(window.before);
  const std::optional<Ns> out = out_.Earliest(begin, out_ns, end - in_ns - machine_.run_ahead_ns);
  if (!out) return std::nullopt;
  const Ns gone = *out + out_ns + machine_.run_ahead_ns;
  const std::optional<Ns> in = window.returns ? in_.Latest(gone, in_ns, end) : end;
  if (!in) return std::nullopt;
  const std::int32_t first = std::max(timeline_.FirstFrom(gone), window.after + 1);
  const std::int32_t last = std::min(timeline_.FirstEndingAfter(*in), window.before);
  if (first >= last) return std::nullopt;
  return Swap{window.block, window.after, window.before, window.returns, *out, *in, first, last};
}

std::optional<ScheduleBuilder::Lack> ScheduleBuilder::LackFor(const Window& window,
                                                              std::int32_t op) const {
  const std::int64_t bytes = problem_.blocks[window.block].bytes;
  const Ns out_ns = OutNs(machine_, bytes);
  // If the engine has no room within one period, it never has.
  const Ns period = timeline_.period();
  const Ns begin = timeline_.End(window.after);
  const std::optional<Ns> out = out_.Earliest(begin, out_ns, begin + period + out_ns);
  if (!out) return std::nullopt;
  const Ns gone = *out + out_ns + machine_.run_ahead_ns;
  Lack lack;
  lack.out = std::max<Ns>(0, gone - timeline_.Start(op));
  if (!window.returns) return lack;
  const Ns in_ns = InNs(machine_, bytes);
  const Ns from = std::max(gone, timeline_.End(op));
  const std::optional<Ns> in = in_.Earliest(from, in_ns, from + period + in_ns);
  if (!in) return std::nullopt;
  // If the op waits, the end of the window moves by the same time.
  lack.in = std::max<Ns>(0, *in + in_ns - timeline_.Start(window.before) - lack.out);
  return lack;
}

void ScheduleBuilder::Add(const Swap& swap) {
  const std::int64_t bytes = BytesOf(swap);
  out_.Reserve(swap.out_ns, OutNs(machine_, bytes));
  if (swap.returns) in_.Reserve(swap.in_ns, InNs(machine_, bytes));
  for (std::int32_t op = swap.gone_from; op < swap.gone_until; ++op) {
    left_[op % left_.size()] -= bytes;
  }
  swaps_.push_back(swap);
}

void ScheduleBuilder::DropUnneeded(std::int64_t limit) {
  const auto change = [&](const Swap& swap, std::int64_t bytes) {
    bool is_kept = true;
    for (std::int32_t op = swap.gone_from; op < swap.gone_until; ++op) {
      left_[op % left_.size()] += bytes;
      is_kept = is_kept && left_[op % left_.size()] <= limit;
    }
    return is_kept;
  };
  for (std::size_t i = swaps_.size(); i-- > 0;) {
    if (change(swaps_[i], BytesOf(swaps_[i]))) {
      swaps_.erase(swaps_.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      change(swaps_[i], -BytesOf(swaps_[i]));
    }
  }
}

std::int64_t ScheduleBuilder::peak() const { return *std::max_element(left_.begin(), left_.end()); }

Schedule ScheduleBuilder::ToSchedule(std::string policy) const {
  Schedule schedule;
  schedule.swaps = swaps_;
  std::sort(schedule.swaps.begin(), schedule.swaps.end(),
            [](const Swap& a, const Swap& b) { return a.out_ns < b.out_ns; });
  for (std::int32_t op = 0; op < timeline_.ops(); ++op) {
    schedule.starts.push_back(timeline_.Start(op));
  }
  schedule.step_ns = timeline_.period();
  schedule.peak_bytes = peak();
  for (const Swap& swap : swaps_) {
    schedule.bytes_out += BytesOf(swap);
    if (swap.returns) schedule.bytes_in += BytesOf(swap);
  }
  schedule.policy = std::move(policy);
  return schedule;
}

}  // namespace thimble::schedule
