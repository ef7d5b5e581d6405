// Prints the results of a replay.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tests/bench/measure.h"

namespace thimble::bench {

// The results of one trace on one policy. Figures that a policy could not reach are absent: null in
// JSON, "-" in the table.
struct ReplayResult {
  std::string trace;
  std::string policy;
  std::uint64_t ops = 0;
  Bytes max_live_bytes = 0;
  std::optional<Bytes> fit_bytes;
  std::optional<Bytes> peak_reserved_bytes;
  std::optional<DriverUse> driver;
  std::optional<Speed> speed;
  std::uint64_t overlap_errors = 0;

  std::optional<double> fit_ratio() const;
};

// One JSON object on one line.
std::string JsonLine(const ReplayResult& result);

std::string TableHeader();
std::string TableLine(const ReplayResult& result);

}  // namespace thimble::bench
