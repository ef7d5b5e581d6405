// The four scores of AutoSwap (Zhang et al., "Efficient Memory Management for GPU-based Deep
// Learning Systems", 2019), as baselines. A candidate is the window of a block that spans the op
// with the highest residency. Candidates leave in the order of their scores.
//
//   DOA    duration of absence: how long the block would be gone
//   AOA    area of absence: DOA x bytes
//   WDOA   weighted DOA: the integral of the memory load over that duration
//   SWDOA  submodular WDOA: the same, after the blocks chosen before have left
//
// The paper schedules copies within one step. Here they lie on a circle, as in our schedules,
// because otherwise a schedule could not run twice in a row.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "allocator/offline/schedule/machine.h"
#include "allocator/offline/schedule/problem.h"
#include "allocator/offline/schedule/schedule.h"
#include "allocator/offline/schedule/timeline.h"
#include "allocator/offline/schedule/windows.h"

namespace thimble::schedule {

enum class Score : std::uint8_t { kDoa, kAoa, kWdoa, kSwdoa };
inline constexpr std::array<Score, 4> kScores = {Score::kDoa, Score::kAoa, Score::kWdoa,
                                                 Score::kSwdoa};
const char* NameOf(Score score);

// Candidates of `windows`, the best first. Ties keep the order of `windows`.
std::vector<std::size_t> RankWindows(Score score, const Problem& problem, const Machine& machine,
                                     const Timeline& timeline, const std::vector<Window>& windows);

// Places candidates in this order while they fit, until the peak is at most `limit`. Returns the
// schedule with the lowest peak on the way. No op waits.
Schedule PlanAutoSwap(Score score, const Problem& problem, const Machine& machine,
                      std::int64_t limit);

}  // namespace thimble::schedule
