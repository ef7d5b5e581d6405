// Collects what is logged while it lives.
#pragma once

#include <string>
#include <vector>

#include "absl/base/log_severity.h"
#include "absl/log/log_entry.h"
#include "absl/log/log_sink.h"
#include "absl/log/log_sink_registry.h"
#include "absl/synchronization/mutex.h"

namespace thimble::tf {

class LogLines final : public absl::LogSink {
 public:
  LogLines() { absl::AddLogSink(this); }
  ~LogLines() override { absl::RemoveLogSink(this); }

  void Send(const absl::LogEntry& entry) override {
    absl::MutexLock lock(&mutex_);
    lines_.emplace_back(entry.text_message());
  }

  std::vector<std::string> lines() {
    absl::MutexLock lock(&mutex_);
    return lines_;
  }

 private:
  absl::Mutex mutex_;
  std::vector<std::string> lines_;
};

}  // namespace thimble::tf
