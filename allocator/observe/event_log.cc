#include "allocator/observe/event_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace thimble {
namespace {

using log_format::kTextBytes;
using log_format::Record;

std::uint64_t NowNs() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::steady_clock::now().time_since_epoch())
                                        .count());
}

Record ToRecord(const Event& event, std::uint64_t time_ns) {
  return {static_cast<std::uint64_t>(event.kind),   event.address, event.bytes,
          static_cast<std::uint64_t>(event.stream), event.key,     time_ns};
}

absl::Status SystemError(absl::string_view what) {
  return absl::UnavailableError(absl::StrCat(std::string(what), ": ", std::strerror(errno)));
}

absl::Status WriteAll(int file, const void* data, std::size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = write(file, at, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return SystemError("the event log could not be written");
    at += written;
    bytes -= static_cast<std::size_t>(written);
  }
  return absl::OkStatus();
}

std::string Unique(const std::string& path) {
  static std::atomic<int> logs{0};
  return absl::StrReplaceAll(path, {{"%p", absl::StrCat(getpid(), ".", logs.fetch_add(1))}});
}

}  // namespace

// The logs that are being written. Arenas live as long as their process and are not destroyed at
// its end, so this is who completes their logs then.
class OpenLogs {
 public:
  static OpenLogs& Get() {
    static OpenLogs* const logs = new OpenLogs;  // outlives every log
    return *logs;
  }
  void Add(EventLog* log) {
    MutexLock lock(&mutex_);
    logs_.insert(log);
  }
  void Remove(EventLog* log) {
    MutexLock lock(&mutex_);
    logs_.erase(log);
  }
  void FinishAll() {
    MutexLock lock(&mutex_);
    for (EventLog* const log : logs_) {
      if (!log->IsOurs()) continue;  // the parent's, and its lock may be held for ever
      MutexLock log_lock(&log->mutex_);
      log->Finish().IgnoreError();
    }
  }

 private:
  Mutex mutex_{LockRank::kOpenLogs};
  std::set<EventLog*> logs_ ABSL_GUARDED_BY(mutex_);
};

namespace {

struct AtExit {
  ~AtExit() { OpenLogs::Get().FinishAll(); }
} at_exit;

}  // namespace

EventLog::~EventLog() {
  OpenLogs::Get().Remove(this);
  MutexLock lock(&mutex_);
  Finish().IgnoreError();
}

bool EventLog::IsOurs() const { return process_.load(std::memory_order_relaxed) == getpid(); }

absl::Status EventLog::Start(const std::string& pattern, std::uint64_t most_events) {
  OpenLogs::Get().Add(this);
  MutexLock lock(&mutex_);
  if (file_ >= 0) return absl::FailedPreconditionError("an event log is being written already");
  const std::string path = Unique(pattern);
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return SystemError(absl::StrCat("the event log '", path, "' cannot be opened"));
  if (const absl::Status status = WriteAll(file, &log_format::kHeader, sizeof(log_format::kHeader));
      !status.ok()) {
    close(file);
    return status;
  }
  file_ = file;
  started_ns_ = NowNs();
  room_ = most_events == 0 ? std::numeric_limits<std::uint64_t>::max() : most_events;
  process_.store(getpid(), std::memory_order_relaxed);
  error_ = absl::OkStatus();
  buffer_.reserve(kBufferEvents);
  enabled_.store(true, std::memory_order_relaxed);
  return absl::OkStatus();
}

absl::Status EventLog::Stop() {
  MutexLock lock(&mutex_);
  if (file_ < 0) return absl::FailedPreconditionError("no event log is being written");
  return Finish();
}

absl::Status EventLog::Finish() {
  enabled_.store(false, std::memory_order_relaxed);
  if (file_ < 0) return absl::OkStatus();
  WriteOut();
  if (error_.ok() && room_ > 0 && IsOurs()) {
    log_format::Header complete = log_format::kHeader;
    complete.complete = 1;
    if (pwrite(file_, &complete, sizeof(complete), 0) != sizeof(complete)) {
      error_ = SystemError("the event log could not be completed");
    }
  }
  if (close(std::exchange(file_, -1)) != 0 && error_.ok()) {
    error_ = SystemError("the event log could not be closed");
  }
  return error_;
}

void EventLog::Append(const Event& event) {
  MutexLock lock(&mutex_);
  if (IsOpen()) Add(ToRecord(event, NowNs() - started_ns_));
}

void EventLog::AppendText(Event event, absl::string_view text) {
  event.stream = StreamId{text.size()};
  MutexLock lock(&mutex_);
  if (!IsOpen()) return;
  Add(ToRecord(event, NowNs() - started_ns_));
  while (!text.empty() && IsOpen()) {
    Record part = {static_cast<std::uint64_t>(EventKind::kText), 0, 0, 0, 0, 0};
    std::memcpy(&part.address, text.data(), std::min(text.size(), kTextBytes));
    text.remove_prefix(std::min(text.size(), kTextBytes));
    Add(part);
  }
}

void EventLog::Add(const Record& record) {
  buffer_.push_back(record);
  --room_;
  if (buffer_.size() >= kBufferEvents || room_ == 0) WriteOut();
  if (room_ == 0) enabled_.store(false, std::memory_order_relaxed);
}

void EventLog::WriteOut() {
  if (!IsOurs()) return buffer_.clear();  // the file is the parent's
  if (error_.ok()) error_ = WriteAll(file_, buffer_.data(), buffer_.size() * sizeof(Record));
  buffer_.clear();
  if (!error_.ok()) enabled_.store(false, std::memory_order_relaxed);
}

}  // namespace thimble
