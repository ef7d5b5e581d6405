#include "allocator/observe/log_tail.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/base/whole_file.h"

namespace thimble {
namespace {

using log_format::Record;

constexpr std::size_t kBytes = log_format::kTailEvents * sizeof(Record);

std::string PathOf(const std::string& log) { return absl::StrCat(log, ".tail"); }

// nullptr if mmap fails.
Record* Map(int file, int flags) {
  void* const memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, flags, file, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<Record*>(memory);
}

// Maps a new file, never one that another process may have mapped.
Record* MapNewFile(const std::string& path) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return nullptr;
  Record* const records = posix_fallocate(file, 0, kBytes) == 0 ? Map(file, MAP_SHARED) : nullptr;
  if (records == nullptr) unlink(path.c_str());
  close(file);
  return records;
}

}  // namespace

absl::Status LogTail::Open(const std::string& log, bool has_file) {
  if (has_file) {
    path_ = PathOf(log);
    unlink(path_.c_str());  // left by an earlier log
    records_ = MapNewFile(path_);
  }
  if (records_ != nullptr) return absl::OkStatus();
  path_.clear();
  records_ = Map(-1, MAP_PRIVATE | MAP_ANONYMOUS);
  if (records_ != nullptr) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("no memory for the event log '", log, "': ", std::strerror(errno)));
}

void LogTail::Close() {
  if (records_ != nullptr) munmap(std::exchange(records_, nullptr), kBytes);
}

void LogTail::Remove() const {
  if (!path_.empty()) unlink(path_.c_str());
}

std::vector<Record> ReadTail(const std::string& log) {
  const auto bytes = ReadWholeFile(PathOf(log), kBytes);
  if (!bytes.ok() || bytes->size() != kBytes) return {};
  std::vector<Record> records(log_format::kTailEvents);
  std::memcpy(records.data(), bytes->data(), kBytes);
  return records;
}

}  // namespace thimble
