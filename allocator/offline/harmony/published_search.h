// The published system's own search: the fastest plan over every packer and every pair of
// microbatch sizes that divide the batch, the forward size at least the backward size.
#pragma once

#include <vector>

#include "allocator/offline/harmony/costs.h"
#include "allocator/offline/harmony/packers.h"
#include "allocator/offline/harmony/plan.h"
#include "allocator/offline/harmony/schedule.h"
#include "allocator/offline/harmony/server.h"

namespace thimble::harmony {

// In the order they are tried: among plans that take the same time, the first wins.
using PackerList = std::vector<Packer>;
// The packers of the published runs, and those its scheduler uses by default.
PackerList PackersOfTheRuns();
PackerList DefaultPackers();

struct PublishedSearch {
  Mode mode = Mode::kPipeline;
  bool prefetch = false;
  PackerList packers = PackersOfTheRuns();
};

// The fastest schedules, best first, at most `most`, no plan twice; none if no cut fits.
std::vector<Schedule> SearchPublished(const Costs& costs, const Server& server, int batch,
                                      const PublishedSearch& search, std::size_t most = 1);

}  // namespace thimble::harmony
