// Reads event logs, of this version and of the one before.
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
  bool complete = false;  // cut off neither by its bound nor by the end of its process
  std::string damage;     // why reading ended before the end of the file; "" if it did not
};

// A foreign file, or one of another version, is refused with the reason. Whatever else is wrong
// ends the log there: in the middle of a record, as after a crash, or in one that makes no sense.
absl::StatusOr<LogContents> ReadLog(const std::string& path);

// The events alone; a damaged file is refused.
absl::StatusOr<std::vector<Event>> ReadEventLog(const std::string& path);

// True if the file begins like an event log.
bool IsEventLog(const std::string& path);

// True if it is a log that was not cut off, neither by its bound nor by the end of its process.
bool IsCompleteEventLog(const std::string& path);

}  // namespace thimble
