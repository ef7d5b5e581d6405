// Reads event logs, of this version and of those before.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "allocator/base/event.h"

namespace thimble {

struct LogContents {
  std::vector<Event> events;                              // but for names and parts of texts
  absl::flat_hash_map<std::uint64_t, std::string> names;  // by key
  std::vector<std::string> texts;                         // of each kOom, in their order
  std::uint64_t records = 0;                              // that were read, of all kinds
  std::uint32_t version = 0;
  bool complete = false;  // all that the process had to tell, to its end
  std::string damage;     // what makes no sense in the record after the last; "" if nothing does
  std::string note;       // what a reader of figures must know: why it is not complete; "" if it is
};

// A foreign file, or one of another version, is refused with the reason. Whatever else is wrong
// ends the log there: in the middle of a record, as after a crash, or in one that makes no sense.
// A log that is still being written, or whose process was killed, is read to its last event.
absl::StatusOr<LogContents> ReadLog(const std::string& path);

// An error that says what is wrong, and where, if the log is damaged.
absl::Status CheckUndamaged(const LogContents& log, const std::string& path);

// The events alone; a damaged file is refused.
absl::StatusOr<std::vector<Event>> ReadEventLog(const std::string& path);

// True if the file begins like an event log.
bool IsEventLog(const std::string& path);

}  // namespace thimble
