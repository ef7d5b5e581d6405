#include "tests/simgpu/driver/clock.h"

#include <sys/prctl.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <thread>

namespace simgpu {
namespace {

constexpr double kNsPerUs = 1e3;
// Shorter waits than this spin: the system would wake the thread too late.
constexpr Nanoseconds kSpin = 60000;

double Microseconds(double bytes, double gigabytes_per_second) {
  return bytes / (gigabytes_per_second * 1e3);
}

// The system may otherwise wake a thread 50 us late, to save power.
void WakeInTime() {
  thread_local const bool done = prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL) == 0;
  static_cast<void>(done);
}

}  // namespace

Nanoseconds Timeline::FirstGap(Nanoseconds from, Nanoseconds length) const {
  auto next = busy_.upper_bound(from);
  if (next != busy_.begin()) from = std::max(from, std::prev(next)->second);
  for (; next != busy_.end() && next->first - from < length; ++next) from = next->second;
  return from;
}

void Timeline::Occupy(Nanoseconds begin, Nanoseconds end) {
  if (begin == end) return;
  const auto next = busy_.lower_bound(begin);
  if (next != busy_.end() && next->first == end) {
    end = next->second;
    busy_.erase(next);
  }
  const auto behind = busy_.lower_bound(begin);
  if (behind != busy_.begin() && std::prev(behind)->second == begin) {
    std::prev(behind)->second = end;
  } else {
    busy_.emplace(begin, end);
  }
}

void Timeline::ForgetBefore(Nanoseconds time) {
  while (!busy_.empty() && busy_.begin()->second <= time) busy_.erase(busy_.begin());
}

Clock::Clock(const Options& options)
    : runs_(options.has_clock()),
      profile_(options.profile),
      slow_(options.slow),
      has_nvlinks_(options.nvlinks > 0 && options.profile.nvlink_gbps > 0),
      began_(std::chrono::steady_clock::now()),
      sums_up_(options.summary),
      devices_(static_cast<std::size_t>(options.gpus)) {}

Nanoseconds Clock::Now() const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() -
                                                              began_)
      .count();
}

// As NVML reports them: between 0 and 1, between 2 and 3, and so on.
bool Clock::AreLinked(int one, int other) const { return has_nvlinks_ && one / 2 == other / 2; }

double Clock::GigabytesPerSecond(bool is_linked) const {
  return is_linked ? profile_.nvlink_gbps : std::min(profile_.bus_in_gbps, profile_.bus_out_gbps);
}

// By whichever units are faster.
double Clock::ArithmeticSeconds(const Demand& demand) const {
  const double simd_flops = demand.simd_flops > 0 ? demand.simd_flops : demand.flops;
  const double simd = simd_flops / profile_.SimdPeak(demand.math);
  const double tensor_peak = profile_.TensorPeak(demand.math);
  return tensor_peak > 0 ? std::min(simd, demand.flops / tensor_peak) : simd;
}

double Clock::MicrosecondsOf(const Demand& demand) const {
  switch (demand.kind) {
    case Demand::Kind::kNothing:
      return 0;
    case Demand::Kind::kKernel:
      return profile_.launch_us +
             std::max(
                 {ArithmeticSeconds(demand) * 1e6,
                  Microseconds(demand.bytes, profile_.memory_gbps * profile_.memory_efficiency),
                  Microseconds(demand.bus_bytes, profile_.bus_in_gbps),
                  Microseconds(demand.link_bytes, GigabytesPerSecond(has_nvlinks_))});
    case Demand::Kind::kCopyIn:
      return profile_.bus_in_us + Microseconds(demand.bytes, demand.pageable
                                                                 ? profile_.pageable_gbps
                                                                 : profile_.bus_in_gbps);
    case Demand::Kind::kCopyOut:
      return profile_.bus_out_us + Microseconds(demand.bytes, demand.pageable
                                                                  ? profile_.pageable_gbps
                                                                  : profile_.bus_out_gbps);
    case Demand::Kind::kCopyPeer:
      return profile_.bus_in_us +
             Microseconds(demand.bytes, GigabytesPerSecond(AreLinked(demand.device, demand.peer)));
  }
  return 0;
}

Nanoseconds Clock::DurationOf(const Demand& demand) const {
  const double paging =
      1e6 * SecondsOf(demand.paging, profile_.bus_in_gbps * 1e9, profile_.bus_out_gbps * 1e9);
  return std::llround((MicrosecondsOf(demand) + paging) * kNsPerUs * slow_);
}

void Clock::Occupy(Device& device, Engine engine, Nanoseconds begin, Nanoseconds end,
                   Nanoseconds submitted) {
  // Before its first work a device waits for nobody.
  const bool is_late = begin == submitted && device.end < begin;
  if (device.end > 0 && is_late) device.starved += begin - device.end;
  device.engines[engine].ForgetBefore(submitted);
  device.engines[engine].Occupy(begin, end);
  device.busy[engine] += end - begin;
  device.end = std::max(device.end, end);
}

Nanoseconds Clock::Place(const Demand& demand, Nanoseconds submitted, Nanoseconds ready,
                         const std::string& what) {
  ready = std::max(ready, submitted);
  if (!runs_ || demand.kind == Demand::Kind::kNothing) return ready;
  const Nanoseconds duration = DurationOf(demand);
  std::lock_guard<std::mutex> lock(mutex_);
  if (sums_up_ && !what.empty()) by_name_[what] += duration;
  Device& device = devices_[static_cast<std::size_t>(demand.device)];
  if (demand.kind != Demand::Kind::kCopyPeer) {
    const Engine engine = demand.kind == Demand::Kind::kKernel   ? kCompute
                          : demand.kind == Demand::Kind::kCopyIn ? kIn
                                                                 : kOut;
    const Nanoseconds begin = device.engines[engine].FirstGap(ready, duration);
    Occupy(device, engine, begin, begin + duration, submitted);
    return begin + duration;
  }
  Device& peer = devices_[static_cast<std::size_t>(demand.peer)];
  Nanoseconds begin = ready;
  while (true) {
    const Nanoseconds both =
        peer.engines[kIn].FirstGap(device.engines[kOut].FirstGap(begin, duration), duration);
    if (both == begin) break;
    begin = both;
  }
  Occupy(device, kOut, begin, begin + duration, submitted);
  Occupy(peer, kIn, begin, begin + duration, submitted);
  return begin + duration;
}

Nanoseconds Clock::EndOf(int device) {
  std::lock_guard<std::mutex> lock(mutex_);
  return devices_[static_cast<std::size_t>(device)].end;
}

void Clock::WaitUntil(Nanoseconds time) const {
  for (Nanoseconds left = time - Now(); left > 0; left = time - Now()) {
    if (left <= kSpin) continue;
    WakeInTime();
    std::this_thread::sleep_for(std::chrono::nanoseconds(left - kSpin / 2));
  }
}

void Clock::Pay(double microseconds) const {
  if (!runs_ || microseconds <= 0) return;
  WaitUntil(Now() + std::llround(microseconds * kNsPerUs * slow_));
}

std::vector<std::pair<std::string, double>> Clock::Longest(std::size_t count) {
  std::vector<std::pair<std::string, double>> all;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [name, time] : by_name_) {
      all.emplace_back(name, static_cast<double>(time) / 1e9 / slow_);
    }
  }
  std::sort(all.begin(), all.end(),
            [](const auto& a, const auto& b) { return a.second > b.second; });
  all.resize(std::min(count, all.size()));
  return all;
}

Clock::Summary Clock::SummaryOf(int device) {
  std::lock_guard<std::mutex> lock(mutex_);
  const Device& one = devices_[static_cast<std::size_t>(device)];
  const auto seconds = [this](Nanoseconds time) { return static_cast<double>(time) / 1e9 / slow_; };
  return {seconds(one.busy[kCompute]), seconds(one.busy[kIn]), seconds(one.busy[kOut]),
          seconds(one.starved)};
}

}  // namespace simgpu
