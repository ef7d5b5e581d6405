// Looks for a fast plan, on a ladder of memories from the least in which any plan fits.
//
//   L1  Rungs are made of the profile and the batch alone, not of the memory of the server: that
//       only says where to stop.
//   L2  What is done at a rung depends on the rungs below it and on nothing above.
//   L3  The best schedule of all rungs so far stays until a rung has a faster one. It was simulated
//       with the memory of its own rung: a schedule that fits there fits in more.
//
// So what is found with more memory is what is found with less, or faster: more memory never gives
// a slower plan, with all else equal (server, batch, options). Where a swap limit is given, plans
// within it come before others, and it holds from the first of them on; and so for host memory.
//
// At some rungs, the best plans so far are changed a little. At the others there are four steps,
// each with a part of the budget:
//
//   seeds    the best plans so far, and the published search's own plans, for this memory and for
//            somewhat less of it, because it does not count all that is in memory
//   grid     counts of microbatches and sizes of the fused pack, those with the least to compute
//            first, each with packs cut evenly
//   changes  of the best so far, a few at a time: borders of packs, counts, splits and merges
//   refining activations of some layers stay on the GPU or wait on the host instead of being
//            computed again; packs stay on their GPU between iterations, wherever that helps
//
// The budget is for the whole ladder, and in work, not in time: the same input gives the same plan
// on every machine, and a slow one takes longer.
#pragma once

#include <optional>

#include "allocator/offline/harmony/costs.h"
#include "allocator/offline/harmony/schedule.h"
#include "allocator/offline/harmony/server.h"

namespace thimble::harmony {

struct SearchOptions {
  bool may_pipeline = true;
  bool may_split_data = true;  // dp
  bool may_keep = true;        // activations
  bool may_reside = true;      // packs between iterations
  double seconds = 5;          // of work, on the machine it was measured on
  // Bytes between host and GPUs that a plan may move; more count as lost time. 0: any. Nothing:
  // DefaultSwapLimit().
  std::optional<double> swap_limit = 0;
};

// As if everything moved once: weights in for the forward and for the backward, gradients out and
// updated weights back; the input of every layer out and in.
double DefaultSwapLimit(const Costs& costs, int batch);

struct FoundPlan {
  Schedule schedule;
  double swap_limit = 0;  // of its rung
};

// Nothing if no plan fits.
std::optional<FoundPlan> SearchPlans(const Costs& costs, const Server& server, int batch,
                                     const SearchOptions& options);

}  // namespace thimble::harmony
