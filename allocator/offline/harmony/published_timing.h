// How long an iteration takes by the rules of the published system, exactly as its simulator has
// it.
//
//   - every stream of a GPU is a queue; a step begins when its inputs are there and the step before
//     it on its stream is over
//   - the bandwidth to the host is split evenly and for good among the GPUs that have tasks
//   - a transfer between GPUs occupies both ends; a reduction over GPUs occupies compute
//   - weights are never fetched while the task before computes; 40 ms after every task for deletion
//   - dp: one GPU stands for all
//
// Memory is not part of it: what waits on the GPU for a busy receiver is not counted.
#pragma once

#include <vector>

#include "allocator/offline/harmony/costs.h"
#include "allocator/offline/harmony/schedule.h"
#include "allocator/offline/harmony/server.h"

namespace thimble::harmony {

// `plan` has one size of microbatches for all forward tasks and one for all backward tasks. Without
// steps and with infinite seconds if two GPUs would wait for each other.
Schedule TimePublished(const Costs& costs, const Server& server, const Plan& plan);

// The published memory of one task.
double PublishedTaskBytes(const Costs& costs, const Plan& plan, int task);

// The layers of forward task `task` at which a backward pack begins: it leaves its input there.
std::vector<int> StashLayers(const Plan& plan, int task);

// By microbatch of `to`: the microbatch of `from` with which its last sample is there.
std::vector<int> LastPiece(const std::vector<int>& from, const std::vector<int>& to);

}  // namespace thimble::harmony
