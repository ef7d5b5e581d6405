// The user's options, as one string: SIMGPU_CONF=key:value,key:value. README.md explains each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/simgpu/driver/defects.h"
#include "tests/simgpu/driver/profile.h"

namespace simgpu {

using Bytes = std::uint64_t;

inline constexpr int kMaxDevices = 16;
inline constexpr int kHost = -1;  // in the place of a device
inline constexpr int kMaxNvlinks = 18;

struct Options {
  int gpus = 1;
  // One entry per device; the last one stands for all that follow.
  std::vector<Bytes> memory = {Bytes{80} << 30};
  std::vector<std::string> name = {"NVIDIA A100-SXM4-80GB"};
  Bytes reserve = 0;  // of each device, for what a context takes by itself
  Bytes granularity = Bytes{2} << 20;
  int capability = 80;  // compute capability, times ten
  bool vmm = true;      // what the device says it supports
  bool pools = true;
  bool numa_chunks = true;   // cuMemCreate on a NUMA node of the host, and...
  bool host_chunks = false;  // ...on the host without a node
  int numa = 0;              // the nearest node; -1: the machine has none
  bool peers = true;
  int nvlinks = 0;  // between 0 and 1, between 2 and 3, and so on
  bool descriptors = true;
  Bytes copy = Bytes{1} << 20;  // longer copies inside devices leave the bytes alone
  Bytes results = 4096;         // up to here a read that no copy wrote gives zeros...
  int truth = 1;                // ...and a single byte gives this
  std::string log;              // file for every call
  std::string illegal;          // file for calls that break a rule; "": standard error
  std::string fault;            // see faults.h
  Defects defects;              // see defects.h
  bool summary = false;         // totals on standard error when the process ends
  std::string clock = "off";    // whose time work takes: a name or a file that profile.h knows
  Profile profile;              // that of the clock
  int slow = 1;                 // how many times slower than the profile
  std::string races = "auto";   // "on", "off", or as the clock: "auto"

  bool has_clock() const { return clock != "off"; }
  bool has_races() const { return races == "on" || (races == "auto" && has_clock()); }
  Bytes MemoryOf(int device) const;
  const std::string& NameOf(int device) const;
};

// False, and `error` names the key or value and the valid choices, if `text` makes no sense.
bool ParseOptions(const std::string& text, Options* options, std::string* error);

}  // namespace simgpu
