// The published system's own search: every pair of microbatch sizes that divide the batch, every
// packer, and the fastest of them.
#pragma once

#include <vector>

#include "allocator/harmony/costs.h"
#include "allocator/harmony/plan.h"
#include "allocator/harmony/schedule.h"
#include "allocator/harmony/server.h"

namespace thimble::harmony {

enum class PackerSet {
  kPublished,  // balanced time, and forward packs that are the backward ones: the published runs
  kAll
};

struct PublishedSearch {
  Mode mode = Mode::kPipeline;
  bool prefetch = false;
  PackerSet packers = PackerSet::kPublished;
};

// The fastest schedules, best first, at most `most` of them; none if no cut fits.
std::vector<Schedule> SearchPublished(const Costs& costs, const Server& server, int batch,
                                      const PublishedSearch& search, std::size_t most = 1);

}  // namespace thimble::harmony
