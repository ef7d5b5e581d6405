// The newest records of a log, before they are written to it: log_format.h says how they lie there.
//
// It is a file beside the log that is mapped, so that what was stored there survives whatever ends
// the process, kill -9 included, at the price of a store to memory. Its disk space is taken at
// once: a disk that fills up later cannot make the process fail here.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "allocator/observe/log_format.h"

namespace thimble {

class LogTail {
 public:
  LogTail() = default;
  ~LogTail() { Close(); }
  LogTail(const LogTail&) = delete;
  LogTail& operator=(const LogTail&) = delete;

  // Where there can be no file beside the log, these are plain memory, and end with the process.
  [[nodiscard]] absl::Status Open(const std::string& log, bool has_file);
  // The file stays.
  void Close();
  // The file is not needed any more.
  void Remove() const;

  log_format::Record& operator[](std::uint64_t number) {
    return records_[number % log_format::kTailEvents];
  }

 private:
  std::string path_;  // "" if there is no file
  log_format::Record* records_ = nullptr;
};

// What there is beside a log; nothing if the log is complete.
std::vector<log_format::Record> ReadTail(const std::string& log);

}  // namespace thimble
