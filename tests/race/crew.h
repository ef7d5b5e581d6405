// Threads that stress arenas and detect bytes that are not theirs.
//
// Every block gets a unique pattern when it is allocated. The thread that frees it, which may be
// another one that got it by mail, checks the pattern first. A byte that two blocks share, or a
// block that lost its memory, breaks a pattern.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "allocator/arena/arena.h"
#include "allocator/base/mutex.h"
#include "allocator/driver/driver.h"
#include "allocator/driver/host_driver.h"
#include "tests/workloads/random.h"

namespace thimble {

inline constexpr Bytes kGranule = 4 * kKiB;
inline constexpr Bytes kLimit = 24 * kMiB;

// A device of `bytes` with small granules, so that blocks have many seams. Never null.
std::unique_ptr<HostDriver> OpenDevice(Bytes bytes = kLimit);
std::unique_ptr<Arena> MakeArena(Driver* driver, const ArenaOptions& options = {});

struct HeldBlock {
  Arena* arena = nullptr;
  Address address;
  Bytes bytes = 0;
  std::uint64_t pattern = 0;

  // Both touch the ends and a few places in between, at least one per granule of small blocks.
  void Fill() const;
  bool IsIntact() const;
};

// Blocks on their way from one thread to another.
class Mail {
 public:
  void Send(const HeldBlock& block);
  std::optional<HeldBlock> Receive();

 private:
  Mutex mutex_{LockRank::kRegistry};
  std::vector<HeldBlock> blocks_ ABSL_GUARDED_BY(mutex_);
};

// What threads saw, added up.
struct Tally {
  std::uint64_t operations = 0;
  std::uint64_t allocations = 0;
  std::uint64_t frees = 0;
  std::uint64_t received = 0;  // of these, blocks of other threads
  std::uint64_t out_of_memory = 0;
  std::uint64_t broken = 0;   // blocks whose pattern was not intact
  std::uint64_t refused = 0;  // calls that failed and should not have

  Tally& operator+=(const Tally& other);
};

// One thread's share of the work. `arenas` are used in turn; blocks are freed where they belong.
struct Task {
  std::uint64_t seed = 1;
  std::vector<Arena*> arenas;
  Mail* mail = nullptr;
  std::uint64_t operations = 0;
  Bytes largest = 256 * kKiB;
  std::uint64_t streams = 4;
};
Tally Perform(const Task& task);

// Runs `task` on `threads` threads at once, each with its own seed, `generations` times one after
// the other with new threads.
Tally PerformOnThreads(const Task& task, int threads, int generations = 1);

// Receives and frees what is left in the mail.
Tally EmptyMail(Mail* mail);

}  // namespace thimble
