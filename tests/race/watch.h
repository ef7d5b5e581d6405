// A thread that polls statistics, snapshots and logs of an arena while others work, and checks each
// answer: statistics add up, snapshots tile memory, a log ends well.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

#include "allocator/arena/arena.h"

namespace thimble {

class Watch {
 public:
  // Starts. `log` is the path of a file to write event logs to.
  Watch(Arena* arena, std::string log);
  ~Watch() { Stop(); }

  void Stop();

  std::uint64_t samples() const { return samples_; }
  // After Stop(): the first wrong answer; "" if there was none.
  const std::string& untrue() const { return untrue_; }

 private:
  void Run();
  void Expect(bool truth, const char* what);
  void CheckStats(const ArenaStats& stats);
  void CheckSnapshot();
  void CheckTrim(Bytes keep);
  void CheckLog();

  Arena* const arena_;
  const std::string log_;
  std::atomic<std::uint64_t> samples_{0};
  std::string untrue_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace thimble
