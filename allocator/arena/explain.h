// Looks into a Space and says what is there: for failed requests, statistics and pictures.
#pragma once

#include "allocator/arena/space.h"
#include "allocator/arena/swapper.h"
#include "allocator/observe/oom_report.h"
#include "allocator/observe/snapshot.h"

namespace thimble {

// Right after `space` refused `request`. `swapper` is null with swap:off.
OomReport ExplainOom(Space& space, const Swapper* swapper, const Request& request);

// Chunks, blocks and who holds them. stats is left empty.
Snapshot TakeSnapshot(const Space& space);

}  // namespace thimble
