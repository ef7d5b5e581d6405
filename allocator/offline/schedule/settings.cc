#include "allocator/offline/schedule/settings.h"

#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "allocator/base/bytes.h"
#include "allocator/base/quote.h"
#include "allocator/base/status_macros.h"

namespace thimble::schedule {
namespace {

constexpr Ns kPcie4LatencyNs = 10000;
constexpr std::int64_t kPcie4BytesPerSecond = 24000000000;

// A number from `least` to `most`, in units of 1 / `scale`.
absl::StatusOr<std::int64_t> ParseScaled(absl::string_view what, absl::string_view text,
                                         double least, double most, double scale) {
  double number = 0;
  if (absl::SimpleAtod(text, &number) && number >= least && number <= most) {
    return std::llround(number * scale);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(what, " ", Quote(text), " is not a number from ", least, " to ", most));
}

}  // namespace

absl::StatusOr<std::int64_t> ParseLimit(absl::string_view text) {
  THIMBLE_ASSIGN_OR_RETURN(const Bytes bytes, ParseBytes(text));
  if (bytes > 0 && bytes <= static_cast<Bytes>(kMaxBytes)) return static_cast<std::int64_t>(bytes);
  return absl::InvalidArgumentError(
      absl::StrCat("limit ", Quote(text), " is not from 1 byte to ", FormatBytes(kMaxBytes)));
}

absl::StatusOr<std::int64_t> ParseSlowdown(absl::string_view text) {
  constexpr std::int64_t kPercent = kMillion / 100;
  constexpr std::int64_t kMost = kMostSlowdown / kPercent;
  return ParseScaled("slowdown in percent", text, 0, kMost, kPercent);
}

absl::StatusOr<Ns> ParseRunAhead(absl::string_view text) {
  return ParseScaled("run-ahead in milliseconds", text, 0, 10000, 1e6);
}

absl::StatusOr<Machine> ParseBus(absl::string_view text) {
  Machine machine;
  if (text == "13") return machine;
  machine.out_latency_ns = machine.in_latency_ns = kPcie4LatencyNs;
  machine.out_bytes_per_second = machine.in_bytes_per_second = kPcie4BytesPerSecond;
  if (text == "24") return machine;
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '/');
  if (parts.size() != 2 && parts.size() != 4) {
    return absl::InvalidArgumentError(
        absl::StrCat("bus ", Quote(text),
                     " is not known: write 13, 24, or OUT/IN in GB/s, such as 55/55, with "
                     "latencies in us 55/55/9/8"));
  }
  THIMBLE_ASSIGN_OR_RETURN(machine.out_bytes_per_second,
                           ParseScaled("bus: out in GB/s", parts[0], 0.1, 10000, 1e9));
  THIMBLE_ASSIGN_OR_RETURN(machine.in_bytes_per_second,
                           ParseScaled("bus: in in GB/s", parts[1], 0.1, 10000, 1e9));
  if (parts.size() == 2) return machine;
  THIMBLE_ASSIGN_OR_RETURN(machine.out_latency_ns,
                           ParseScaled("bus: latency out in us", parts[2], 0, 1e6, 1e3));
  THIMBLE_ASSIGN_OR_RETURN(machine.in_latency_ns,
                           ParseScaled("bus: latency in in us", parts[3], 0, 1e6, 1e3));
  return machine;
}

absl::StatusOr<Settings> ReadSettings(
    const std::vector<std::pair<std::string, std::string>>& values) {
  Settings settings;
  Machine fallback;
  Ns run_ahead = 0;
  int goals = 0;
  for (const auto& [key, value] : values) {
    if (key == "limit") {
      THIMBLE_ASSIGN_OR_RETURN(settings.goal.limit, ParseLimit(value));
      ++goals;
    } else if (key == "slowdown") {
      THIMBLE_ASSIGN_OR_RETURN(settings.goal.slowdown, ParseSlowdown(value));
      ++goals;
    } else if (key == "bus") {
      THIMBLE_ASSIGN_OR_RETURN(settings.machine, ParseBus(value));
      settings.has_bus = true;
    } else if (key == "machine_bus") {
      THIMBLE_ASSIGN_OR_RETURN(fallback, ParseBus(value));
    } else if (key == "run_ahead_ms") {
      THIMBLE_ASSIGN_OR_RETURN(run_ahead, ParseRunAhead(value));
    } else {
      return absl::InvalidArgumentError(absl::StrCat(
          Quote(key),
          " is not a setting: write limit, slowdown, bus, machine_bus or run_ahead_ms"));
    }
  }
  if (goals > 1) {
    return absl::InvalidArgumentError("limit and slowdown exclude each other: write one of them");
  }
  if (!settings.has_bus) settings.machine = fallback;
  settings.machine.run_ahead_ns = run_ahead;
  return settings;
}

Machine MachineFor(const Problem& problem, const Settings& settings) {
  const Bus& measured = problem.measured;
  if (settings.has_bus || measured.out == 0 || measured.in == 0) return settings.machine;
  Machine machine;
  machine.out_bytes_per_second = measured.out;
  machine.in_bytes_per_second = measured.in;
  machine.out_latency_ns = machine.in_latency_ns = 0;  // included in the measured speed
  machine.run_ahead_ns = settings.machine.run_ahead_ns;
  return machine;
}

}  // namespace thimble::schedule
