// A height below which no packing of a conflict problem can be.
//
// Buffers of a clique conflict with one another, so they lie side by side: in the gaps that fixed
// buffers leave, or above the highest of those. A gap is full only if some of the sizes add up to
// it, and a large buffer fits few gaps; what the gaps cannot take comes on top. That often is far
// more than the bytes live at once, and often the height that is reached: it tells a search that is
// done from one that is stuck.
//
//   fixed   ####        ###    #####
//   gaps        <------>   <-->     the clique 5 5 2 fills them with 5 and 2, not with 12 bytes:
//   clique      55555      22  .....55555    at least 5 are above all that is fixed
#pragma once

#include <cstdint>

#include "allocator/plan/conflict_problem.h"

namespace thimble::plan {

// The best bound of several cliques found greedily; some milliseconds at most.
std::int64_t CliqueBound(const ConflictProblem& problem);

}  // namespace thimble::plan
