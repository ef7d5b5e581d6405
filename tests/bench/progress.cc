#include "tests/bench/progress.h"

#include <unistd.h>

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace thimble::bench {
namespace {

constexpr std::chrono::milliseconds kRefresh{250};
constexpr int kWidth = 20;
constexpr char kClear[] = "\r\033[K";

}  // namespace

Progress::Progress() : watched_(isatty(STDERR_FILENO) != 0) {
  if (watched_) counter_ = std::thread([this] { Count(); });
}

Progress::~Progress() {
  if (!watched_) return;
  Clear();
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  ended_.notify_all();
  counter_.join();
}

void Progress::Say(absl::string_view text, int done, int total) {
  if (!watched_) return;
  const std::lock_guard lock(mutex_);
  text_ = std::string(text);
  done_ = done;
  total_ = total;
  Write();
}

void Progress::Clear() {
  if (!watched_) return;
  const std::lock_guard lock(mutex_);
  text_.clear();
  Write();
}

void Progress::Count() {
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, kRefresh, [this] { return is_over_; })) {
    if (!text_.empty()) Write();
  }
}

std::string Progress::Line() const {
  if (text_.empty()) return "";
  std::string line = text_;
  if (total_ > 0) {
    const int filled = kWidth * done_ / total_;
    absl::StrAppend(&line, "  [", std::string(filled, '#'), std::string(kWidth - filled, '-'),
                    absl::StrFormat("]  %d of %d", done_, total_));
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin_;
  return absl::StrCat(line, absl::StrFormat("  %.0f s", taken.count()));
}

void Progress::Write() const {
  std::fputs((kClear + Line()).c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace thimble::bench
