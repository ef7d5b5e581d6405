// The newest records of a log, before they are written to it. log_format.h describes the layout.
//
// The tail is a mapped file beside the log. So its records survive any end of the process, even
// kill -9, for the price of a store to memory. Open() allocates its disk space, so that a disk that
// fills up later cannot crash the process here.
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

  // Uses plain memory, which ends with the process, if there can be no file beside the log.
  [[nodiscard]] absl::Status Open(const std::string& log, bool has_file);
  // Unmaps the tail and keeps the file.
  void Close();
  // Deletes the file.
  void Remove() const;

  log_format::Record& operator[](std::uint64_t number) {
    return records_[number % log_format::kTailEvents];
  }

 private:
  std::string path_;  // "" if there is no file
  log_format::Record* records_ = nullptr;
};

// The tail beside a log; empty if there is none, as for a complete log.
std::vector<log_format::Record> ReadTail(const std::string& log);

}  // namespace thimble
