// A random walk through all calls of an arena. Compares each answer with the oracle. The same plan
// gives the same walk.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "allocator/arena/arena.h"
#include "allocator/driver/host_driver.h"
#include "tests/drivers/delay_driver.h"
#include "tests/model/oracle.h"
#include "tests/model/plan.h"
#include "tests/workloads/random.h"

namespace thimble {

// The number of operations between two runs of the expensive checks.
struct Pace {
  std::uint64_t stats = 8;
  std::uint64_t invariants = 512;
  std::uint64_t physical = 4096;
};

class RandomWalk {
 public:
  RandomWalk(const Plan& plan, const Pace& pace);
  ~RandomWalk();

  // Fails the test, with seed and operation, at the first answer that is not the oracle's.
  void Run(std::uint64_t operations);
  // Frees everything and destroys the arena: all must be back at the driver.
  void Finish();

  const Plan& plan() const { return plan_; }
  std::uint64_t operation() const { return operation_; }
  // A digest of every address handed out, relative to the base of the arena.
  std::uint64_t digest() const { return digest_; }

  // Counts of what happened, so that no walk passes because it did nothing.
  struct Tally {
    std::uint64_t allocations = 0;
    std::uint64_t refusals = 0;
    std::uint64_t stitched = 0;
    std::uint64_t bad_frees = 0;
    std::uint64_t trims = 0;
    std::uint64_t trimmed_bytes = 0;
    std::uint64_t holds = 0;
  };
  const Tally& tally() const { return tally_; }

 private:
  bool Chance(std::size_t per_thousand) { return random_.Index(1000) < per_thousand; }
  StreamId AnyStream() { return StreamId{random_.Index(plan_.streams)}; }
  bool IsHeld(StreamId stream) const { return held_[static_cast<std::uint64_t>(stream)]; }
  bool AnyHeld() const;

  void Step();
  void Allocate();
  void AllocateNothing();
  void AllocateTooMuch();
  void Free();
  void FreeSomeInARow();
  void FreeBadPointer();
  void Query();
  void Trim();
  void HoldOrRelease();
  void Release(std::uint64_t stream);

  void CheckRefusal(const absl::Status& status, Bytes padded);
  void CheckStats();
  void CheckAtPace();
  void NoteAddress(Address address);

  const Plan plan_;
  const Pace pace_;
  workloads::Random random_;
  SizeDraw sizes_;
  std::unique_ptr<HostDriver> host_;
  std::unique_ptr<DelayDriver> driver_;
  std::unique_ptr<Arena> arena_;
  Oracle oracle_;
  std::vector<bool> held_;  // by stream
  Address home_base_;
  Bytes home_bytes_ = 0;
  Address alias_base_;
  double occupancy_ = 0.5;  // of the limit: above it, frees are likelier
  Address last_freed_;
  std::uint64_t operation_ = 0;
  std::uint64_t serial_ = 0;
  std::uint64_t digest_ = 0;
  Tally tally_;
};

}  // namespace thimble
