// How long an iteration takes by the rules of the published system, exactly as in its simulator.
//
//   - every stream of a GPU is a queue; an action begins when its inputs are there and the action
//     before it on its stream has ended
//   - the bandwidth to the host is split evenly and permanently among the GPUs that have tasks
//   - a transfer between GPUs occupies both ends; a reduction over GPUs occupies compute
//   - weights are never fetched while the previous task computes; each task ends with 40 ms of
//     deletion
//   - dp: one GPU stands for all
//
// Memory is not simulated: outputs that wait on the GPU for a busy receiver are not counted.
#pragma once

#include <vector>

#include "allocator/offline/harmony/costs.h"
#include "allocator/offline/harmony/schedule.h"
#include "allocator/offline/harmony/server.h"

namespace thimble::harmony {

// `plan` has one microbatch size for all forward tasks and one for all backward tasks. The schedule
// has no actions and infinite seconds if two GPUs would wait for each other.
Schedule TimePublished(const Costs& costs, const Server& server, const Plan& plan);

// The memory of one task by the published rule.
double PublishedTaskBytes(const Costs& costs, const Plan& plan, int task);

// The layers of forward task `task` at which a backward pack begins: their inputs are stashed.
std::vector<int> StashLayers(const Plan& plan, int task);

// By microbatch of `to`: the microbatch of `from` that delivers its last sample.
std::vector<int> LastPiece(const std::vector<int>& from, const std::vector<int>& to);

}  // namespace thimble::harmony
