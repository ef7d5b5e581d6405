// Reads event logs of this version and older ones.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "allocator/base/event.h"

namespace thimble {

struct LogContents {
  std::vector<Event> events;                              // except names and parts of texts
  absl::flat_hash_map<std::uint64_t, std::string> names;  // by key
  std::vector<std::string> texts;                         // of the kOom events, in order
  std::uint64_t records = 0;                              // number read, of all kinds
  std::uint32_t version = 0;
  bool complete = false;  // the process completed the log
  std::string damage;     // what is wrong with the record after the last one; "" if none
  std::string note;       // why the log is incomplete, for users; "" if it is complete
};

// Refuses a foreign file or an unknown version with the reason. Any other defect ends the log
// there: a cut record, as after a crash, or a damaged one. A log that is still being written, or
// whose process was killed, is read to its last event.
absl::StatusOr<LogContents> ReadLog(const std::string& path);

// An error that says what is damaged and where; OK if nothing is.
absl::Status CheckUndamaged(const LogContents& log, const std::string& path);

// Only the events. Refuses a damaged file.
absl::StatusOr<std::vector<Event>> ReadEventLog(const std::string& path);

// True if the file begins like an event log.
bool IsEventLog(const std::string& path);

}  // namespace thimble
