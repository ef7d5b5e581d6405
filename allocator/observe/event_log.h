// Every allocation and free of an arena, written to a binary file through a small buffer.
//
// Off by default; then enabled() is all it costs. When on, an event is copied under a lock of its
// own, into a buffer that survives the process (log_tail.h), and every kTailEvents-th caller writes
// the buffer out. A write that fails ends the log, not the training: one line on standard error
// says so, and Stop() reports it. When the process ends by exit() or by returning from main(), the
// log is completed; when it is killed, all events can still be read.
//
// The file is described in log_format.h and read by log_reader.h.
// Order: a free is in the log before its memory can be allocated again, so that a replay sees no
// overlap.
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
  ~EventLog();  // like Stop(), with nobody to tell

  // Creates or truncates `path`, readable by its owner only. "%p" in it becomes a name that no
  // other log has: the number of the process and one that counts its logs. The log ends without
  // being complete after `most_events`, unless that is 0.
  [[nodiscard]] absl::Status Start(const std::string& path, std::uint64_t most_events = 0);

  // Writes what is buffered. The first error since Start(), if there was one.
  [[nodiscard]] absl::Status Stop();

  void Append(const Event& event) override;

  // The same for an event that has a text (kName, kOom); both stay together.
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
  // False in a child that was forked while the log was open: file and tail are its parent's.
  bool IsOurs() const;

  Mutex mutex_{LockRank::kEventLog};
  std::string path_ ABSL_GUARDED_BY(mutex_);
  int file_ ABSL_GUARDED_BY(mutex_) = -1;
  LogTail tail_ ABSL_GUARDED_BY(mutex_);
  log_format::Header header_ ABSL_GUARDED_BY(mutex_){};
  std::uint64_t started_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  std::uint64_t records_ ABSL_GUARDED_BY(mutex_) = 0;
  std::uint64_t written_ ABSL_GUARDED_BY(mutex_) = 0;  // of these, to the file
  std::uint64_t most_records_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status error_ ABSL_GUARDED_BY(mutex_);
  std::atomic<int> forks_{0};  // that had happened when it was started
};

}  // namespace thimble
