#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>

#include "tests/bench/clock.h"
#include "tests/bench/measure.h"

namespace thimble::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kWarmUpReplays = 2;
constexpr std::size_t kRoundOps = 20000;   // shorter traces are replayed several times per round
constexpr std::size_t kTotalOps = 600000;  // spread over the rounds of one policy
constexpr std::size_t kFewestRounds = 5;
constexpr std::size_t kStampedRounds = 5;

double NanosecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

double MeasureTicksPerNanosecond() {
  constexpr double kWindowNs = 5e7;
  const Clock::time_point start = Clock::now();
  const std::uint64_t first = Ticks();
  while (NanosecondsSince(start) < kWindowNs) {
  }
  return static_cast<double>(Ticks() - first) / NanosecondsSince(start);
}

double TicksPerNanosecond() {
  static const double kRate = MeasureTicksPerNanosecond();
  return kRate;
}

// One policy and its state between rounds.
class Runner {
 public:
  Runner(const Workload& workload, const SpeedSubject& subject)
      : workload_(workload),
        subject_(subject.kind, subject.capacity, Sizing::kNatural),
        addresses_(workload.ids),
        replays_per_round_(std::max<std::size_t>(1, kRoundOps / workload.ops.size())) {}

  bool WarmUp() {
    for (int replay = 0; replay < kWarmUpReplays; ++replay) {
      if (!Replay(workload_, &subject_.policy())) return false;
    }
    return true;
  }

  // False if a replay ran out of memory; the round then counts for nothing.
  bool TimeRound() {
    bool ok = true;
    const double start = PolicyNanoseconds();
    for (std::size_t replay = 0; replay < replays_per_round_ && ok; ++replay) {
      for (const TraceOp& op : workload_.ops) {
        ok = ReplayOp(op, &subject_.policy(), &addresses_);
        if (!ok) break;
      }
    }
    const double ns = (PolicyNanoseconds() - start) / static_cast<double>(round_ops());
    if (ok) speed_.ns_per_op = std::min(speed_.ns_per_op, ns);
    return ok;
  }

  bool StampRound() {
    stamps_.clear();
    stamps_.reserve(round_ops());
    for (std::size_t replay = 0; replay < replays_per_round_; ++replay) {
      for (const TraceOp& op : workload_.ops) {
        const std::uint64_t driver_ticks = subject_.device().driver_time().ticks;
        const std::uint64_t start = Ticks();
        if (!ReplayOp(op, &subject_.policy(), &addresses_)) return false;
        const std::uint64_t all_ticks = Ticks() - start;
        stamps_.push_back(all_ticks - (subject_.device().driver_time().ticks - driver_ticks));
      }
    }
    const auto rank = stamps_.begin() + static_cast<std::ptrdiff_t>(stamps_.size() * 999 / 1000);
    std::nth_element(stamps_.begin(), rank, stamps_.end());
    speed_.p999_ns = std::min(speed_.p999_ns, static_cast<double>(*rank) / TicksPerNanosecond());
    return true;
  }

  std::size_t round_ops() const { return replays_per_round_ * workload_.ops.size(); }
  const Speed& speed() const { return speed_; }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  // The time of this thread without the driver's part.
  double PolicyNanoseconds() const {
    return ThreadNanoseconds() - subject_.device().driver_time().thread_ns;
  }

  const Workload& workload_;
  Subject subject_;
  Addresses addresses_;
  const std::size_t replays_per_round_;
  std::vector<std::uint64_t> stamps_;
  Speed speed_{kNever, kNever};
};

}  // namespace

std::vector<std::optional<Speed>> MeasureSpeed(const Workload& workload,
                                               const std::vector<SpeedSubject>& subjects) {
  std::vector<std::unique_ptr<Runner>> runners;  // null once a policy ran out of memory
  for (const SpeedSubject& subject : subjects) {
    runners.push_back(std::make_unique<Runner>(workload, subject));
  }
  const auto each = [&runners](bool (Runner::*step)()) {
    for (std::unique_ptr<Runner>& runner : runners) {
      if (runner != nullptr && !(runner.get()->*step)()) runner.reset();
    }
  };
  each(&Runner::WarmUp);
  const std::size_t round_ops = std::max(kRoundOps, workload.ops.size());
  const std::size_t rounds = std::max(kFewestRounds, kTotalOps / round_ops);
  for (std::size_t round = 0; round < rounds; ++round) each(&Runner::TimeRound);
  for (std::size_t round = 0; round < kStampedRounds; ++round) each(&Runner::StampRound);

  std::vector<std::optional<Speed>> speeds;
  for (const std::unique_ptr<Runner>& runner : runners) {
    speeds.push_back(runner != nullptr ? std::make_optional(runner->speed()) : std::nullopt);
  }
  return speeds;
}

}  // namespace thimble::bench
