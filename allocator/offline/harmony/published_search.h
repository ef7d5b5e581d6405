// The published system's own search: every pair of microbatch sizes that divide the batch, the
// forward one not below the backward one, every packer, and the fastest of them.
#pragma once

#include <vector>

#include "allocator/offline/harmony/costs.h"
#include "allocator/offline/harmony/packers.h"
#include "allocator/offline/harmony/plan.h"
#include "allocator/offline/harmony/schedule.h"
#include "allocator/offline/harmony/server.h"

namespace thimble::harmony {

// In the order in which they are tried: of plans that take the same time the first one wins.
using PackerList = std::vector<Packer>;
// Of the runs for the published table of models, and what its scheduler takes unless told.
PackerList PackersOfTheRuns();
PackerList DefaultPackers();

struct PublishedSearch {
  Mode mode = Mode::kPipeline;
  bool prefetch = false;
  PackerList packers = PackersOfTheRuns();
};

// The fastest schedules, best first, at most `most` of them, no plan twice; none if no cut fits.
std::vector<Schedule> SearchPublished(const Costs& costs, const Server& server, int batch,
                                      const PublishedSearch& search, std::size_t most = 1);

}  // namespace thimble::harmony
