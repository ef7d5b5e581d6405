// The main figures of the run that wrote an event log.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "allocator/base/bytes.h"
#include "allocator/offline/logs/log_reader.h"

namespace thimble {

struct LogSummary {
  std::uint64_t events = 0;  // of all kinds
  std::uint64_t allocations = 0;
  Bytes peak_in_use = 0;  // of requested bytes
  Bytes reserved_at_start = 0;
  Bytes peak_reserved = 0;
  Bytes reserved_at_peak = 0;  // when peak_in_use was first reached
  std::uint64_t stitches = 0;
  std::uint64_t steps = 0;
  std::uint64_t plan_requests = 0;  // the last value in the log
  std::uint64_t plan_hits = 0;
  std::uint64_t plan_repeats = 0;
  Bytes swap_out_bytes = 0;
  Bytes swap_in_bytes = 0;
  std::uint64_t swap_wait_ns = 0;
  Bytes peak_swapped = 0;  // most bytes on the host at once
  bool complete = false;
  Bytes limit = 0;                  // the last one; 0 if unknown
  std::uint64_t out_of_memory = 0;  // refused requests; retries of one request count once
  std::uint64_t duration_ns = 0;    // until the last event
  std::uint64_t damaged_at = 0;     // number of the damaged record, counted from 1; 0: none
  Bytes swapped_at_peak = 0;        // on the host when peak_in_use was first reached
  std::string note;                 // as in LogContents
};

LogSummary Summarize(const LogContents& log);

// A JSON object with the same names.
std::string ToJson(const LogSummary& summary);

// Reads a log up to any damage and, unless `trace_path` is empty, writes it there as a text trace.
absl::StatusOr<LogSummary> ConvertLog(const std::string& log_path, const std::string& trace_path);

}  // namespace thimble
