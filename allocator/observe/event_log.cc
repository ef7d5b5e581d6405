#include "allocator/observe/event_log.h"

#include <fcntl.h>
#include <pthread.h>
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
#include "allocator/base/status_macros.h"
#include "allocator/base/warn.h"

namespace thimble {
namespace {

using log_format::kTextBytes;
using log_format::Record;

std::uint64_t NowNs() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::steady_clock::now().time_since_epoch())
                                        .count());
}

// The number of forks that led to this process. It tells a child from its parent and is cheaper
// than getpid().
std::atomic<int> forks{0};
[[maybe_unused]] const int counts_forks =
    pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });

Record ToRecord(const Event& event, std::uint64_t time_ns) {
  return {static_cast<std::uint32_t>(event.kind),   0,         event.address, event.bytes,
          static_cast<std::uint64_t>(event.stream), event.key, time_ns};
}

// A number that no other log has.
std::uint64_t NewId() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(now).count()) ^
         static_cast<std::uint64_t>(getpid()) << 40;
}

absl::Status SystemError(const std::string& path, absl::string_view what) {
  return absl::UnavailableError(
      absl::StrCat("the event log '", path, "' ", what, ": ", std::strerror(errno)));
}

// False on failure; errno has the reason.
bool WriteAll(int file, const void* data, std::size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = write(file, at, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    at += written;
    bytes -= static_cast<std::size_t>(written);
  }
  return true;
}

bool IsRegular(int file) {
  struct stat found = {};
  return fstat(file, &found) == 0 && S_ISREG(found.st_mode);
}

std::string Unique(const std::string& path) {
  static std::atomic<int> logs{0};
  return absl::StrReplaceAll(path, {{"%p", absl::StrCat(getpid(), ".", logs.fetch_add(1))}});
}

}  // namespace

// The logs that are being written. Arenas are not destroyed at the end of the process, so this
// class completes their logs.
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
      if (!log->IsOurs()) continue;  // the parent's; its lock may never be released here
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

bool EventLog::IsOurs() const {
  return forks_.load(std::memory_order_relaxed) == forks.load(std::memory_order_relaxed);
}

absl::Status EventLog::Start(const std::string& pattern, std::uint64_t most_events) {
  OpenLogs::Get().Add(this);
  MutexLock lock(&mutex_);
  if (file_ >= 0) return absl::FailedPreconditionError("an event log is being written already");
  path_ = Unique(pattern);
  header_ = {
      log_format::kMagic, log_format::kVersion, sizeof(Record), log_format::End::kOpen, 0, NewId()};
  const int file = open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return SystemError(path_, "cannot be opened");
  absl::Status status = tail_.Open(path_, IsRegular(file));
  if (status.ok() && !WriteAll(file, &header_, sizeof(header_))) {
    status = SystemError(path_, "could not be written");
    tail_.Remove();
    tail_.Close();
  }
  if (!status.ok()) {
    close(file);
    return status;
  }
  file_ = file;
  started_ns_ = NowNs();
  records_ = written_ = 0;
  most_records_ = most_events == 0 ? std::numeric_limits<std::uint64_t>::max() : most_events;
  forks_.store(forks.load(std::memory_order_relaxed), std::memory_order_relaxed);
  error_ = absl::OkStatus();
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
  if (IsOurs()) {
    WriteOut();
    WriteEnd();
  }
  if (close(std::exchange(file_, -1)) != 0 && error_.ok()) {
    error_ = SystemError(path_, "could not be closed");
  }
  if (IsOurs() && error_.ok()) tail_.Remove();
  tail_.Close();
  return error_;
}

void EventLog::Append(const Event& event) {
  if (!IsOurs()) return;
  MutexLock lock(&mutex_);
  if (IsOpen()) Add(ToRecord(event, NowNs() - started_ns_));
}

void EventLog::AppendText(Event event, absl::string_view text) {
  if (!IsOurs()) return;
  event.stream = StreamId{text.size()};
  MutexLock lock(&mutex_);
  if (!IsOpen()) return;
  Add(ToRecord(event, NowNs() - started_ns_));
  while (!text.empty() && IsOpen()) {
    Record part = {static_cast<std::uint32_t>(EventKind::kText), 0, 0, 0, 0, 0, 0};
    std::memcpy(&part.address, text.data(), std::min(text.size(), kTextBytes));
    text.remove_prefix(std::min(text.size(), kTextBytes));
    Add(part);
  }
}

void EventLog::Add(const Record& record) {
  // Field by field: a whole record would first be assembled elsewhere in memory.
  Record& slot = tail_[records_];
  slot.kind = record.kind;
  slot.check = log_format::CheckOf(record, records_, header_.id);
  slot.address = record.address;
  slot.bytes = record.bytes;
  slot.stream = record.stream;
  slot.key = record.key;
  slot.time_ns = record.time_ns;
  ++records_;
  if (records_ % log_format::kTailEvents == 0 || records_ == most_records_) WriteOut();
  if (records_ == most_records_) {
    enabled_.store(false, std::memory_order_relaxed);
    WriteEnd();
  }
}

void EventLog::WriteOut() {
  if (!error_.ok() || records_ == written_) return;
  if (WriteAll(file_, &tail_[written_], (records_ - written_) * sizeof(Record))) {
    written_ = records_;
  } else {
    Fail("could not be written");
  }
}

void EventLog::WriteEnd() {
  if (!error_.ok()) return;
  header_.end = records_ < most_records_ ? log_format::End::kComplete : log_format::End::kBound;
  header_.records = records_;
  if (!WriteHeader()) Fail("could not be completed");
}

bool EventLog::WriteHeader() {
  return pwrite(file_, &header_, sizeof(header_), 0) == sizeof(header_);
}

// Warns as well: the program may never call Stop(), or ignore its status.
void EventLog::Fail(absl::string_view what) {
  error_ = SystemError(path_, what);
  enabled_.store(false, std::memory_order_relaxed);
  header_.end = log_format::End::kFailed;
  WriteHeader();  // without this, the log looks as if its process had been killed
  Warn(absl::StrCat(error_.message(), ". It ends here; the program goes on without it."));
}

}  // namespace thimble
