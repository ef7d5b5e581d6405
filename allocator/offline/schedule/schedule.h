// The result of planning: which block leaves after which op, and when it must be back. A program
// can run it in every step, forever.
//
//   ops        ... [ after ] [     ] [ gone_from ] ... [ gone_until ] [     ] [ before ] ...
//   out engine              [ copy out ]
//   block      there                   | on the host  |  there
//   in engine                                          [ copy in ]
//
// To run it, key ops by name and occurrence, never by index: frameworks reorder them.
//   - when `after` has ended, copy the block out; copies out go in the order of out_ns
//   - before `gone_from` asks for memory, wait until that is done and take the block's memory
//   - when the op before `gone_until` has ended, give it memory and copy it in; copies in go in the
//     order of in_ns, and each waits for the memory it needs
//   - before `before` begins, wait until that is done
// A block that does not return is freed while it is on the host: `before` frees it.
#pragma once

#include <string>
#include <vector>

#include "allocator/offline/schedule/problem.h"

namespace thimble::schedule {

// Ops are numbered as in Problem: those of the next step are n and above, and so are times.
struct Swap {
  std::int32_t block = 0;   // index into Problem::blocks
  std::int32_t after = 0;   // the last op that touches it before it leaves; below n
  std::int32_t before = 0;  // the next op that touches it
  bool returns = true;
  Ns out_ns = 0;  // when the copy out begins
  Ns in_ns = 0;   // when the copy in begins; when `before` begins if it does not return
  // The block takes no memory for ops [gone_from, gone_until): none, if it is gone only while
  // gone_from waits.
  std::int32_t gone_from = 0;
  std::int32_t gone_until = 0;
};

struct Schedule {
  std::vector<Swap> swaps;      // in the order of out_ns
  std::vector<Ns> starts;       // of every op; later than without swapping if it waits
  Ns step_ns = 0;               // of a whole step with swapping
  std::int64_t peak_bytes = 0;  // most on the device at once
  std::int64_t bytes_out = 0;   // copied in a step
  std::int64_t bytes_in = 0;
  std::string policy;  // the search that found it
};

}  // namespace thimble::schedule
