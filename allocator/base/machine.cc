#include "allocator/base/machine.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace thimble {
namespace {

constexpr Bytes kUnlimited = std::numeric_limits<Bytes>::max();

// The number in a file of the kernel; kUnlimited if it says "max" or does not exist.
Bytes NumberIn(const char* path) {
  Bytes number = kUnlimited;
  std::ifstream file(path);
  if (!(file >> number)) return kUnlimited;
  return number;
}

Bytes AvailableOnTheMachine() {
  std::ifstream file("/proc/meminfo");
  std::string word;
  Bytes kib = 0;
  while (file >> word) {
    if (word == "MemAvailable:" && file >> kib) return kib * kKiB;
  }
  return kUnlimited;
}

}  // namespace

Bytes HalfOfTheMachine() {
  const Bytes pages = static_cast<Bytes>(sysconf(_SC_PHYS_PAGES));
  return RoundDown(pages * static_cast<Bytes>(sysconf(_SC_PAGESIZE)) / 2, kGiB) + kGiB;
}

Bytes AvailableMemory() {
  const Bytes most = NumberIn("/sys/fs/cgroup/memory.max");
  const Bytes used = most == kUnlimited ? 0 : NumberIn("/sys/fs/cgroup/memory.current");
  return std::min(AvailableOnTheMachine(), most - std::min(most, used));
}

}  // namespace thimble
