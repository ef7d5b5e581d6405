// Problems for tests and measurements, the same for the same seed on every machine.
#pragma once

#include <cstdint>

#include "allocator/plan/conflict_problem.h"
#include "allocator/plan/problem.h"
#include "allocator/plan/random.h"

namespace thimble::plan {

// Random lifetimes and sizes: `moments` points in time, sizes from 1 to `most`.
Problem RandomProblem(std::int32_t count, std::int64_t moments, std::int64_t most, Random& random);

// A full rectangle cut into `count` pieces, some of which then end early: like the benchmarks of
// MiniMalloc, it can be packed into `height`, but hardly any search finds how.
Problem CutProblem(std::int32_t count, std::int64_t height, Random& random);

// The same number of bytes is live at all times: whenever two buffers end, two others begin that
// are together as large. Where the two were not neighbours, no plan is as low as the bound.
Problem TightProblem(std::int32_t count, Random& random);

// Steps of training, about `count` buffers: weights that stay, activations that wait for the
// backward pass in reverse order, gradients, and short-lived scratch; every layer alike.
Problem TrainingProblem(std::int32_t count, Random& random);

// Some thousand large buffers with staggered lifetimes among many small ones, all of odd sizes.
Problem StaggeredProblem(std::int32_t count, Random& random);

// The same problem as pairs in conflict.
ConflictProblem AsConflicts(const Problem& problem, std::int64_t alignment);

}  // namespace thimble::plan
