// The baselines: the cost of the same iteration on GPUs with virtual memory that evicts the least
// recently used tensor. Tensors move whole, and to the host only if they were written.
#pragma once

#include <optional>

#include "allocator/offline/harmony/costs.h"
#include "allocator/offline/harmony/plan.h"
#include "allocator/offline/harmony/server.h"

namespace thimble::harmony {

struct Baseline {
  double seconds = 0;  // copies do not overlap computing, as with page faults
  double swap_bytes = 0;
  double compute_fraction = 0;
  int microbatch = 0;  // the fastest size
};

// dp: every GPU has all layers and its share of the samples. pp: every GPU has its share of the
// layers and alternates one forward, one backward. With `recompute`, only the inputs of layers are
// kept from a forward. Nothing if no microbatch size fits layer by layer.
std::optional<Baseline> LruBaseline(const Costs& costs, const Server& server, int batch, Mode mode,
                                    bool recompute);

}  // namespace thimble::harmony
