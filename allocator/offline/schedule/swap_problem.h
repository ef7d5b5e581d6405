// Turns a trace with accesses into the input of swap planning.
//
// It takes one step: the last one between two S lines that has at least half as many accesses as
// any other, because a program does more than train. With one S line it takes the rest of the
// trace, and without any the whole trace from its first access on. A block is
//
//   cyclic              if it is there when the step begins and when it ends: weights
//   of the step         if it is allocated and freed in it: activations
//   of two steps        if it is allocated in one and freed in the next, such as the next batch:
//                       what is freed in this step is found again among what is left over by its
//                       first access, and the two are one block
//
// Blocks below 1 MiB and blocks without an access never leave: they count only in the sums.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "allocator/offline/logs/trace_text.h"
#include "allocator/offline/schedule/problem.h"

namespace thimble {

// Errors begin with `name`. The result has passed schedule::CheckProblem().
absl::StatusOr<schedule::Problem> SwapProblemFromTrace(const Trace& trace, absl::string_view name);

// The same for a file: a text trace, or an event log of an arena that swaps, which has accesses.
absl::StatusOr<schedule::Problem> ReadSwapProblem(const std::string& path);

}  // namespace thimble
