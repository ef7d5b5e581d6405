// Searches for a fast plan on a ladder of memory sizes, from the least in which any plan fits.
//
//   L1  Rungs depend on the profile and the batch only. The server's memory only says where to
//   stop. L2  The search at a rung depends on the rungs below it, never on those above. L3  The
//   best schedule so far stays until a rung finds a faster one. It was simulated with the
//       memory of its own rung, so it fits in more memory too.
//
// So with all else equal (server, batch, options), more memory never gives a slower plan. If a swap
// limit is given, plans within it rank before others, so the promise holds from the first such plan
// on. The same is true of host memory.
//
// At some rungs, the best plans so far are changed a little. At the others the search has four
// phases, each with a part of the budget:
//
//   seeds    the best plans so far, and the published search's own plans, for this memory and for
//            somewhat less, because the published rule does not count everything in memory
//   grid     counts of microbatches and sizes of the fused pack, those that compute least first,
//            each with packs cut evenly
//   changes  to the best so far, a few at a time: borders of packs, counts, splits and merges
//   refining activations of some layers stay on the GPU or wait on the host and are not computed
//            again; packs become resident where that helps
//
// The budget covers the whole ladder and counts work, not time: the same input gives the same plan
// on every machine, and slow machines take longer.
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
  double seconds = 5;          // of work, on the machine where it was measured
  // Bytes a plan may move between host and GPUs; more count as lost time. 0: no limit. Empty:
  // DefaultSwapLimit().
  std::optional<double> swap_limit = 0;
};

// The bytes if everything moves once: weights in for the forward and for the backward, gradients
// out, updated weights back, and the input of every layer out and in.
double DefaultSwapLimit(const Costs& costs, int batch);

struct FoundPlan {
  Schedule schedule;
  double swap_limit = 0;  // of its rung
};

// Nothing if no plan fits.
std::optional<FoundPlan> SearchPlans(const Costs& costs, const Server& server, int batch,
                                     const SearchOptions& options);

}  // namespace thimble::harmony
