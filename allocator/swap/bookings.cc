#include "allocator/swap/bookings.h"

#include <algorithm>
#include <utility>

namespace thimble::swap {

Bookings::Bookings(const Problem& problem, const Machine& machine, const Timeline& timeline)
    : problem_(problem),
      machine_(machine),
      timeline_(timeline),
      out_(timeline.period()),
      in_(timeline.period()) {
  for (const Op& op : problem.ops) left_.push_back(op.live_bytes);
}

std::optional<Swap> Bookings::Place(const Window& window) const {
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

void Bookings::Book(const Swap& swap) {
  const std::int64_t bytes = BytesOf(swap);
  out_.Book(swap.out_ns, OutNs(machine_, bytes));
  if (swap.returns) in_.Book(swap.in_ns, InNs(machine_, bytes));
  for (std::int32_t op = swap.gone_from; op < swap.gone_until; ++op) {
    left_[op % left_.size()] -= bytes;
  }
  swaps_.push_back(swap);
}

bool Bookings::DropIfBelow(std::size_t index, std::int64_t peak) {
  const Swap swap = swaps_[index];
  const std::int64_t bytes = BytesOf(swap);
  for (std::int32_t op = swap.gone_from; op < swap.gone_until; ++op) {
    if (left_[op % left_.size()] + bytes > peak) return false;
  }
  // A window longer than a step counts twice for some ops.
  if (swap.gone_until - swap.gone_from > timeline_.ops()) return false;
  for (std::int32_t op = swap.gone_from; op < swap.gone_until; ++op) {
    left_[op % left_.size()] += bytes;
  }
  swaps_.erase(swaps_.begin() + static_cast<std::ptrdiff_t>(index));
  return true;
}

std::int64_t Bookings::peak() const { return *std::max_element(left_.begin(), left_.end()); }

Schedule Bookings::ToSchedule(std::string policy) const {
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

}  // namespace thimble::swap
