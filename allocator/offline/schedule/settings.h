// Reads users' settings: limits, slowdowns, machines. An error quotes the value and says what to
// write instead.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "allocator/offline/schedule/machine.h"
#include "allocator/offline/schedule/planner.h"

namespace thimble::schedule {

// "8GiB", "512MiB", "1000000": positive.
absl::StatusOr<std::int64_t> ParseLimit(absl::string_view text);

// Percent, "5" or "0.5", from 0 to 1000, as parts per million.
absl::StatusOr<std::int64_t> ParseSlowdown(absl::string_view text);

// Milliseconds, "2" or "0.5", from 0 to 10000.
absl::StatusOr<Ns> ParseRunAhead(absl::string_view text);

// "13" (PCIe 3, as AutoSwap measured it, the default Machine), "24" (PCIe 4: 24 GB/s and 10 us
// either way), or OUT/IN in GB/s, such as "55/55", with the latencies of "24" or with their own in
// microseconds, as in "55/55/9/8".
absl::StatusOr<Machine> ParseBus(absl::string_view text);

struct Settings {
  Machine machine;
  bool has_bus = false;  // the user chose one; else the measured one counts, if any
  Goal goal;
};

// Reads limit, slowdown, bus, machine_bus and run_ahead_ms, as above; a limit and a slowdown
// exclude each other. Without settings: no slowdown, and the bus that was measured while the step
// was recorded, or else machine_bus, or else 13.
absl::StatusOr<Settings> ReadSettings(
    const std::vector<std::pair<std::string, std::string>>& values);

// The machine to plan `problem` for.
Machine MachineFor(const Problem& problem, const Settings& settings);

}  // namespace thimble::schedule
