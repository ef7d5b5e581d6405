// What a user can choose, as one string: "key:value,key:value", the grammar of THIMBLE_CONF.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "allocator/base/bytes.h"

namespace thimble {

struct ArenaOptions {
  Bytes limit = 0;                     // most bytes to take from the driver; 0: all the device has
  bool preallocate = false;            // take all of it at once instead of growing
  Bytes chunk_bytes = 2 * kMiB;        // the unit of stitching; raised to the driver's granularity
  bool stitch = true;                  // build blocks from pieces that are not contiguous
  bool plan = false;                   // learn what training repeats and where it fits best
  std::string plan_file;               // what is learned is kept there; "": nowhere
  bool swap = false;                   // idle blocks leave the device when memory is short
  bool watch = false;                  // they stay, but who uses them is known: for OomReport
  Bytes swap_limit = 0;                // leave when so much is reserved; 0: when there is no more
  std::uint64_t swap_slowdown = 0;     // ppm that may be lost to need less; 0: leave when they must
  Bytes host_limit = 0;                // most bytes of them on the host; 0: half of the machine's
  bool magazines = true;               // let threads keep small blocks
  std::chrono::milliseconds retry{0};  // how long a request that does not fit waits for frees
};

struct Options {
  static constexpr int kCpu = -1;
  int device = 0;                // CUDA ordinal, or kCpu: host memory stands in for a device
  Bytes memory = 0;              // of the cpu device; 0: half of the machine's
  std::string driver;            // CUDA driver library to open; "": the one the loader finds
  std::vector<int> peers;        // CUDA ordinals that may read and write this device's memory too
  std::string log;               // event log from the start on; "": none
  std::uint64_t log_events = 0;  // after so many it ends; 0: never
  bool nvtx = false;             // tell tools where blocks are
  ArenaOptions arena;
};

// A size as options give it: as ParseBytes(), but not zero.
absl::Status ParseSize(absl::string_view value, Bytes* bytes);

// Every key at most once; unknown keys, bad values and contradictions are refused with a message
// that names them and the valid choices. Empty text means all defaults.
absl::StatusOr<Options> ParseOptions(absl::string_view text);

// All options with their values, in the same grammar.
std::string FormatOptions(const Options& options);

}  // namespace thimble
