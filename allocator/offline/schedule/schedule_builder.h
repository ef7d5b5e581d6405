// Builds a schedule: keeps what the two copy engines do, and how much stays on the device.
//
// An op counts a block as gone only if the block is gone for all of it: its copy out ended before
// (run-ahead included), its copy in begins after.
#pragma once

#include <optional>
#include <vector>

#include "allocator/offline/schedule/copy_engine.h"
#include "allocator/offline/schedule/machine.h"
#include "allocator/offline/schedule/problem.h"
#include "allocator/offline/schedule/schedule.h"
#include "allocator/offline/schedule/timeline.h"
#include "allocator/offline/schedule/windows.h"

namespace thimble::schedule {

class ScheduleBuilder {
 public:
  // All three must outlive it.
  ScheduleBuilder(const Problem& problem, const Machine& machine, const Timeline& timeline);

  // The longest absence that the engines still allow in `window`: out as early, and in as late, as
  // possible. nullopt if no op would gain. Adding swaps never makes an absence longer.
  std::optional<Swap> Place(const Window& window) const;
  void Add(const Swap& swap);

  // The time that is missing for the block of `window` to be gone while op `op` runs, an op in the
  // window: before that op for the copy out, and before the end of the window for the copy in.
  struct Lack {
    Ns out = 0;
    Ns in = 0;
  };
  std::optional<Lack> LackFor(const Window& window, std::int32_t op) const;

  // Removes the swaps that `limit` does not need, the latest first. The engines keep their
  // copies, so this comes last.
  void DropUnneeded(std::int64_t limit);

  const std::vector<std::int64_t>& left() const { return left_; }  // bytes on the device, by op
  std::int64_t peak() const;
  const std::vector<Swap>& swaps() const { return swaps_; }

  // Sorts the swaps in the order in which their blocks leave.
  Schedule ToSchedule(std::string policy) const;

 private:
  std::int64_t BytesOf(const Swap& swap) const { return problem_.blocks[swap.block].bytes; }

  const Problem& problem_;
  const Machine& machine_;
  const Timeline& timeline_;
  CopyEngine out_;
  CopyEngine in_;
  std::vector<std::int64_t> left_;
  std::vector<Swap> swaps_;
};

}  // namespace thimble::schedule
