// Every allocation and free of an arena, written to a binary file through a small buffer.
//
// Off by default; then enabled() is all it costs. When on, an event is copied under a lock of its
// own, and every kBufferEvents-th caller writes the buffer out. A write that fails ends the log,
// not the training: Stop() reports it. Whatever is still buffered when the process ends by exit()
// or by returning from main() is written then.
//
// File: the header (magic, version, size of a record, whether the log was completed), then records,
// little endian.
// Order: a free is in the log before its memory can be allocated again, so that a replay sees no
// overlap.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/base/event.h"
#include "allocator/base/mutex.h"

namespace thimble {

class EventLog {
 public:
  EventLog() = default;
  ~EventLog();  // like Stop(), with nobody to tell

  bool enabled() const { return enabled_.load(std::memory_order_relaxed); }

  // Creates or truncates `path`, readable by its owner only. "%p" in it becomes a name that no
  // other log has: the number of the process and one that counts its logs. The log ends without
  // being complete after `most_events`, unless that is 0.
  [[nodiscard]] absl::Status Start(const std::string& path, std::uint64_t most_events = 0);

  // Writes what is buffered. The first error since Start(), if there was one.
  [[nodiscard]] absl::Status Stop();

  // time_ns is filled in. Does nothing when off.
  void Append(Event event);

 private:
  static constexpr std::size_t kBufferEvents = 4096;

  friend class OpenLogs;

  void WriteOut() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Finish() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsOurs() const;  // false in a child that was forked while the log was open

  std::atomic<bool> enabled_{false};
  Mutex mutex_{LockRank::kEventLog};
  int file_ ABSL_GUARDED_BY(mutex_) = -1;
  std::uint64_t started_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  std::uint64_t room_ ABSL_GUARDED_BY(mutex_) = 0;  // for so many events more
  std::vector<Event> buffer_ ABSL_GUARDED_BY(mutex_);
  absl::Status error_ ABSL_GUARDED_BY(mutex_);
  std::atomic<int> process_{0};  // who started it
};

// True if the file begins like an event log.
bool IsEventLog(const std::string& path);

// True if it is a log that was not cut off, neither by its bound nor by the end of its process.
bool IsCompleteEventLog(const std::string& path);

// Reads a whole log. A damaged or foreign file is refused with the reason; a log that was cut off
// in the middle of a record, as by a crash, gives the records before.
absl::StatusOr<std::vector<Event>> ReadEventLog(const std::string& path);

}  // namespace thimble
