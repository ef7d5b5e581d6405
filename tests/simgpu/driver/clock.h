// The time of the simulated machine: how long work takes on which of a device's engines.
//
// The host's part of time is the real one. Work that is submitted now gets the first time at which
// the engines that it needs are free and what it waits for is over, so its end is known at once;
// nobody has to do anything until then. Who waits for the device really waits, until that moment.
//
//   engine   what it does, one work at a time
//   compute  kernels, products, fills and copies inside the device
//   in, out  copies to the device, and from it; a copy between devices takes the first one's out
//            and the other one's in
//
// With `slow:N` everything that is modelled takes N times as long, so that the host, which is real,
// is N times as fast. Without a profile nothing takes any time.
//
// Thread-safe.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tests/simgpu/driver/options.h"
#include "tests/simgpu/driver/paging.h"

namespace simgpu {

using Nanoseconds = std::int64_t;  // since the machine began

// What a piece of work asks of the hardware.
struct Demand {
  enum class Kind { kNothing, kKernel, kCopyIn, kCopyOut, kCopyPeer };
  Kind kind = Kind::kNothing;
  int device = 0;
  int peer = 0;           // kCopyPeer: where the bytes go
  double bytes = 0;       // copied; kKernel: of device memory that it reads and writes
  double flops = 0;       // kKernel
  double bus_bytes = 0;   // kKernel: of host memory that it reads and writes
  double simd_flops = 0;  // where the device has no units for matrices; 0: as many
  double link_bytes = 0;  // kKernel: exchanged with other devices by a collective
  Math math = Math::kFp32;
  bool pageable = false;  // the end on the host is not pinned
  Movement paging;        // pages that come and go before it can begin
};

// When an engine is busy.
class Timeline {
 public:
  // The first time from `from` on that has `length` free.
  Nanoseconds FirstGap(Nanoseconds from, Nanoseconds length) const;
  void Occupy(Nanoseconds begin, Nanoseconds end);
  void ForgetBefore(Nanoseconds time);

 private:
  std::map<Nanoseconds, Nanoseconds> busy_;  // begin -> end; neighbours are one
};

class Clock {
 public:
  explicit Clock(const Options& options);

  bool runs() const { return runs_; }
  const Profile& profile() const { return profile_; }
  Nanoseconds Now() const;

  // Gives the work, which was submitted at `submitted`, its time, not before `ready`. Returns its
  // end.
  Nanoseconds Place(const Demand& demand, Nanoseconds submitted, Nanoseconds ready,
                    const std::string& what = "");
  // When the last work of a device ends.
  Nanoseconds EndOf(int device);

  // Keeps the calling thread until `time`.
  void WaitUntil(Nanoseconds time) const;
  // The same for a call that costs this much.
  void Pay(double microseconds) const;

  // As modelled, without `slow`.
  struct Summary {
    double compute_seconds;
    double in_seconds;
    double out_seconds;
    double starved_seconds;  // idle because the host had not submitted anything
  };
  Summary SummaryOf(int device);
  // What kept all devices busy longest, with its seconds; only what had a name and was to be summed
  // up (`summary:on`).
  std::vector<std::pair<std::string, double>> Longest(std::size_t count);

 private:
  enum Engine { kCompute, kIn, kOut, kEngines };
  struct Device {
    std::array<Timeline, kEngines> engines;
    std::array<Nanoseconds, kEngines> busy = {};
    Nanoseconds end = 0;  // of all work
    Nanoseconds starved = 0;
  };

  Nanoseconds DurationOf(const Demand& demand) const;
  double MicrosecondsOf(const Demand& demand) const;  // without its paging
  double ArithmeticSeconds(const Demand& demand) const;
  bool AreLinked(int one, int other) const;
  double GigabytesPerSecond(bool is_linked) const;  // between devices
  void Occupy(Device& device, Engine engine, Nanoseconds begin, Nanoseconds end,
              Nanoseconds submitted);

  const bool runs_;
  const Profile profile_;
  const int slow_;
  const bool has_nvlinks_;
  const std::chrono::steady_clock::time_point began_;
  const bool sums_up_;
  std::mutex mutex_;
  std::vector<Device> devices_;
  std::map<std::string, Nanoseconds> by_name_;
};

}  // namespace simgpu
