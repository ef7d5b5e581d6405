// Every allocation and free of an arena, written to a binary file through a small buffer.
//
// Off by default; then enabled() is all it costs. When on, an event is copied under a lock of its
// own, and every kBufferEvents-th caller writes the buffer out. A write that fails ends the log,
// not the training: Stop() reports it.
//
// File: the header (magic, version, size of a record), then records, little endian.
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

  // Creates or truncates `path`, readable by its owner only.
  [[nodiscard]] absl::Status Start(const std::string& path);

  // Writes what is buffered. The first error since Start(), if there was one.
  [[nodiscard]] absl::Status Stop();

  // time_ns is filled in. Does nothing when off.
  void Append(Event event);

 private:
  static constexpr std::size_t kBufferEvents = 4096;

  void WriteOut() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Finish() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::atomic<bool> enabled_{false};
  Mutex mutex_{LockRank::kEventLog};
  int file_ ABSL_GUARDED_BY(mutex_) = -1;
  std::uint64_t started_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<Event> buffer_ ABSL_GUARDED_BY(mutex_);
  absl::Status error_ ABSL_GUARDED_BY(mutex_);
};

// True if the file begins like an event log.
bool IsEventLog(const std::string& path);

// Reads a whole log. A damaged or foreign file is refused with the reason; a log that was cut off
// in the middle of a record, as by a crash, gives the records before.
absl::StatusOr<std::vector<Event>> ReadEventLog(const std::string& path);

}  // namespace thimble
