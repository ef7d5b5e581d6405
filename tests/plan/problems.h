// Problems for tests and measurements, the same for the same seed on every machine.
#pragma once

#include <cstdint>

#include "allocator/plan/conflict_problem.h"
#include "allocator/plan/problem.h"
#include "allocator/plan/random.h"

namespace thimble::plan {

// Lifetimes and sizes without any structure. `moments`: of time; sizes are from 1 to `most`.
Problem RandomProblem(std::int32_t count, std::int64_t moments, std::int64_t most, Random& random);

// A full rectangle cut into `count` pieces, some of which then end early: like the benchmarks of
// MiniMalloc, it can be packed as high as `height`, and hardly anybody sees how.
Problem CutProblem(std::int32_t count, std::int64_t height, Random& random);

// As much is live at every moment as at any other: whenever two buffers end, two others begin that
// are together as large. Where the two were not neighbours, no plan is as low as the bound.
Problem TightProblem(std::int32_t count, Random& random);

// Steps of training, about `count` buffers: weights that stay, activations that wait for the
// backward pass in reverse order, gradients, and short-lived scratch; every layer alike.
Problem TrainingProblem(std::int32_t count, Random& random);

// Some thousand large buffers with staggered lifetimes among many small ones, all of odd sizes.
Problem StaggeredProblem(std::int32_t count, Random& random);

// The same problem, told pair by pair.
ConflictProblem AsConflicts(const Problem& problem, std::int64_t alignment);

}  // namespace thimble::plan
