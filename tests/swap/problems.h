// Invented training steps: small ones that can be checked by hand, random ones, and access traces
// like those of a network.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "allocator/offline/schedule/problem.h"
#include "tests/workloads/random.h"

namespace thimble::schedule {

inline constexpr std::int64_t kMiB = std::int64_t{1} << 20;
inline constexpr Ns kMs = 1000000;

// Ops of `ns` each, with `live` bytes. They have no allocations between them: an op waits with what
// it and the one before have.
Problem ProblemOf(const std::vector<std::int64_t>& live, Ns ns);

// Blocks of all kinds (weights, activations, next batches) over ops of all lengths. Passes
// CheckProblem().
Problem RandomProblem(workloads::Random& random);

// The text of an access trace of `steps` steps: `layers` layers forward and backward, with weights,
// the state of an optimizer, activations, scratch, and a next batch that arrives before a step
// ends.
std::string TrainingTrace(int layers, int steps, std::uint64_t seed);

}  // namespace thimble::schedule
