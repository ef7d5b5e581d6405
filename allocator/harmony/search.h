// Looks for a fast plan. Four steps, each with a part of the budget:
//
//   seeds    the published search's own plans, for this memory and for somewhat less of it, because
//            it does not count all that is in memory
//   grid     counts of microbatches and sizes of the fused pack, those with the least to compute
//            first, each with packs cut evenly
//   changes  of the best so far, a few at a time: borders of packs, counts, splits and merges
//   refining activations of some layers stay on the GPU or wait on the host instead of being
//            computed again; packs stay on their GPU between iterations, wherever that helps
//
// The budget is in work, not in time: the same input gives the same plan on every machine, and a
// slow one takes longer.
#pragma once

#include <optional>

#include "allocator/harmony/costs.h"
#include "allocator/harmony/schedule.h"
#include "allocator/harmony/server.h"

namespace thimble::harmony {

struct SearchOptions {
  bool may_pipeline = true;
  bool may_split_data = true;  // dp
  bool may_keep = true;        // activations
  bool may_reside = true;      // packs between iterations
  double seconds = 5;          // of work, on the machine it was measured on
  // Bytes between host and GPUs that a plan may move; more count as lost time. 0: any.
  double swap_limit = 0;
};

// Nothing if no plan fits.
std::optional<Schedule> SearchPlans(const Costs& costs, const Server& server, int batch,
                                    const SearchOptions& options);

}  // namespace thimble::harmony
