// Writes every call to the log, and calls that break a rule to the list of illegal calls. Both are
// files that several processes may append to, a line at a time.
#pragma once

#include <atomic>
#include <mutex>
#include <string>

#include "tests/simgpu/driver/options.h"

namespace simgpu {

class Log {
 public:
  using Sink = void (*)(const char* line);

  // Opens what `options` names. False, and `error` names the path, if a file cannot be opened.
  bool Open(const Options& options, std::string* error);

  // Without a reader a call does not even format its arguments.
  bool is_read() const { return is_read_.load(std::memory_order_relaxed); }
  void Write(const std::string& line);
  void WriteIllegal(const std::string& line);
  // Illegal calls of this thread are on purpose from now on: they are neither counted nor listed.
  static void Provoke(bool on);

  // For tests in the same process: sees the lines that Write() gets. Null: nobody.
  void SetSink(Sink sink);
  unsigned long illegal_calls() const { return illegal_calls_.load(); }

 private:
  std::mutex mutex_;
  int calls_ = -1;  // descriptors; -1: not open
  int illegal_ = -1;
  Sink sink_ = nullptr;
  std::atomic<bool> is_read_{false};
  std::atomic<unsigned long> illegal_calls_{0};
};

}  // namespace simgpu
