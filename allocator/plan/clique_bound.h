// A lower bound on the height of every packing of a conflict problem.
//
// The buffers of a clique all conflict with one another, so they lie side by side: in the gaps
// between fixed buffers, or above the highest fixed one. Some of their sizes must add up to a gap
// to fill it, and a large buffer fits few gaps; what the gaps cannot take lies on top. This bound
// is often far above the bytes live at once, and often equals the best height. So it tells a search
// that is done from one that is stuck.
//
//   fixed   ####        ###    #####
//   gaps        <------>   <-->     the clique 5 5 2 fills them with 5 and 2, not with 12 bytes:
//   clique      55555      22  .....55555    at least 5 are above all that is fixed
#pragma once

#include <cstdint>

#include "allocator/plan/conflict_problem.h"

namespace thimble::plan {

// The best bound of several cliques, found greedily. Takes a few milliseconds at most.
std::int64_t CliqueBound(const ConflictProblem& problem);

}  // namespace thimble::plan
