#include "allocator/observe/event_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace thimble {
namespace {

// As it is in the file. Plain integers at fixed places, no padding.
struct Record {
  std::uint64_t kind;
  std::uint64_t address;
  std::uint64_t bytes;
  std::uint64_t stream;
  std::uint64_t key;
  std::uint64_t time_ns;
};
struct Header {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint16_t record_bytes;
  std::uint16_t complete;  // written last
};
constexpr std::array<char, 8> kMagic = {'T', 'H', 'I', 'M', 'B', 'L', 'E', 'L'};
constexpr Header kHeader = {kMagic, 1, sizeof(Record), 0};
static_assert(sizeof(Header) == 16 && sizeof(Record) == 48, "the file has no padding");

std::uint64_t NowNs() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::steady_clock::now().time_since_epoch())
                                        .count());
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
  if (const absl::Status status = WriteAll(file, &kHeader, sizeof(kHeader)); !status.ok()) {
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
    Header complete = kHeader;
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

void EventLog::Append(Event event) {
  MutexLock lock(&mutex_);
  if (file_ < 0 || !error_.ok() || room_ == 0) return;
  event.time_ns = NowNs() - started_ns_;
  buffer_.push_back(event);
  --room_;
  if (buffer_.size() >= kBufferEvents || room_ == 0) WriteOut();
  if (room_ == 0) enabled_.store(false, std::memory_order_relaxed);
}

void EventLog::WriteOut() {
  if (!IsOurs()) return buffer_.clear();  // the file is the parent's
  std::vector<Record> records;
  records.reserve(buffer_.size());
  for (const Event& event : buffer_) {
    records.push_back({static_cast<std::uint64_t>(event.kind), event.address, event.bytes,
                       static_cast<std::uint64_t>(event.stream), event.key, event.time_ns});
  }
  buffer_.clear();
  if (error_.ok()) error_ = WriteAll(file_, records.data(), records.size() * sizeof(Record));
  if (!error_.ok()) enabled_.store(false, std::memory_order_relaxed);
}

bool IsEventLog(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::array<char, 8> magic{};
  return file.read(magic.data(), magic.size()) && magic == kMagic;
}

bool IsCompleteEventLog(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Header header{};
  return file.read(reinterpret_cast<char*>(&header), sizeof(header)) && header.magic == kMagic &&
         header.complete == 1;
}

absl::StatusOr<std::vector<Event>> ReadEventLog(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat("'", path, "' cannot be opened"));
  Header header{};
  if (!file.read(reinterpret_cast<char*>(&header), sizeof(header)) || header.magic != kMagic) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' is not an event log of Thimble"));
  }
  if (header.version != kHeader.version || header.record_bytes != kHeader.record_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' is an event log of version ",
                                                   header.version, ", this program reads version ",
                                                   kHeader.version));
  }
  std::vector<Event> events;
  Record record{};
  while (file.read(reinterpret_cast<char*>(&record), sizeof(record))) {
    if (record.kind < static_cast<std::uint64_t>(EventKind::kAllocate) ||
        record.kind > static_cast<std::uint64_t>(EventKind::kLast)) {
      return absl::InvalidArgumentError(absl::StrCat("'", path, "' is damaged: record ",
                                                     events.size(), " has kind ", record.kind));
    }
    events.push_back({static_cast<EventKind>(record.kind), record.address, record.bytes,
                      StreamId{record.stream}, record.key, record.time_ns});
  }
  return events;
}

}  // namespace thimble
