// Shows what a program is doing and for how long, on one line of stderr. Writes only if stderr is a
// terminal.
//
//   gpt2.trace: bfc  [######--------------]  3 of 10  12 s
//
// A separate thread counts the seconds; the line disappears with the Progress.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "absl/strings/string_view.h"

namespace thimble::bench {

class Progress {
 public:
  Progress();
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `done` of `total` parts are done, which makes a bar; 0 where the number is not known.
  void Say(absl::string_view text, int done = 0, int total = 0);
  // Removes the line until the next Say(), so that others can write.
  void Clear();

 private:
  void Count();
  std::string Line() const;
  void Write() const;

  const bool watched_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::condition_variable ended_;
  bool is_over_ = false;
  std::string text_;  // "": nothing is shown
  int done_ = 0;
  int total_ = 0;
  std::thread counter_;
};

}  // namespace thimble::bench
