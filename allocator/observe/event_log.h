// Writes every event of an arena, such as allocations and frees, to a binary file through a small
// buffer.
//
// Off by default; then enabled() is the whole cost. When on, each event is copied, under the log's
// lock, into a buffer that survives the process (log_tail.h), and every kTailEvents-th caller
// writes the buffer to the file. A failed write ends the log but not the training: one line on
// standard error says so, and Stop() returns the error. The log is completed when the process calls
// exit() or returns from main(). If the process is killed, all events can still be read.
//
// log_format.h describes the file; log_reader.h reads it. A free is in the log before its memory
// can be allocated again, so that a replay sees no overlap.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "allocator/base/event.h"
#include "allocator/base/mutex.h"
#include "allocator/observe/log_format.h"
#include "allocator/observe/log_tail.h"

namespace thimble {

class EventLog final : public EventSink {
 public:
  EventLog() = default;
  ~EventLog();  // like Stop(), but drops the error

  // Creates or truncates `path`, readable by its owner only. "%p" in it becomes a name that no
  // other log has: the number of the process and a count of its logs. The log ends incomplete after
  // `most_events`, unless that is 0.
  [[nodiscard]] absl::Status Start(const std::string& path, std::uint64_t most_events = 0);

  // Writes the buffer and ends the log. Returns the first error since Start().
  [[nodiscard]] absl::Status Stop();

  void Append(const Event& event) override;

  // The same for an event with a text (kName, kOom). Keeps the two adjacent.
  void AppendText(Event event, absl::string_view text);

 private:
  friend class OpenLogs;

  bool IsOpen() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return file_ >= 0 && error_.ok() && records_ < most_records_;
  }
  void Add(const log_format::Record& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WriteOut() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WriteEnd() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool WriteHeader() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Fail(absl::string_view what) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Finish() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // False in a child that was forked while the log was open: file and tail belong to its parent.
  bool IsOurs() const;

  Mutex mutex_{LockRank::kEventLog};
  std::string path_ ABSL_GUARDED_BY(mutex_);
  int file_ ABSL_GUARDED_BY(mutex_) = -1;
  LogTail tail_ ABSL_GUARDED_BY(mutex_);
  log_format::Header header_ ABSL_GUARDED_BY(mutex_){};
  std::uint64_t started_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  std::uint64_t records_ ABSL_GUARDED_BY(mutex_) = 0;
  std::uint64_t written_ ABSL_GUARDED_BY(mutex_) = 0;  // of these, in the file
  std::uint64_t most_records_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status error_ ABSL_GUARDED_BY(mutex_);
  std::atomic<int> forks_{0};  // count of forks when the log was started
};

}  // namespace thimble
