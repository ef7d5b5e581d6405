// A plan for one iteration, and how fast it is.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "allocator/offline/harmony/lru.h"
#include "allocator/offline/harmony/plan.h"
#include "allocator/offline/harmony/profile.h"
#include "allocator/offline/harmony/published_search.h"
#include "allocator/offline/harmony/schedule.h"
#include "allocator/offline/harmony/server.h"

namespace thimble::harmony {

struct Settings {
  int gpus = 0;             // 0: all of the topology
  double memory_bytes = 0;  // of each GPU
  int batch = 0;
  std::optional<Mode> mode;  // empty: whichever is faster
  Rules rules = Rules::kThimble;
  // Rules harmony only. Empty: with prefetch the scheduler's own packers, without prefetch those of
  // the published runs, so that the published figures come out.
  bool prefetch = false;
  std::optional<PackerList> packers;
  double seconds = 4;    // of search
  bool keep = true;      // activations may be kept for the backward, not computed again
  bool resident = true;  // packs may stay on their GPU between iterations and be updated there
  // Bytes a plan may move between host and GPUs; more count as lost time. 0: no limit. Empty:
  // DefaultSwapLimit().
  std::optional<double> swap_limit;
};

enum BaselineKind {
  kLruDp,
  kLruDpRecompute,
  kLruPp,
  kLruPpRecompute,
  kHarmonyDp,  // the published search, without prefetch, with the packers of the published runs
  kHarmonyPp,
  kHarmonyDpPrefetch,  // with prefetch and all of its scheduler's default packers
  kHarmonyPpPrefetch,
  kBaselines
};
const char* NameOf(BaselineKind kind);

struct Report {
  Schedule schedule;  // has passed ValidateSchedule()
  // The least time to compute if every layer outside the fused pack is run forward again, with
  // microbatches that divide the batch; infinite if none fit.
  double compute_bound = 0;
  double swap_limit = 0;  // that the plan was made with
};

// kInvalidArgument for impossible settings; kResourceExhausted if there is not enough memory, with
// the layer that needs most and how much would be enough.
absl::StatusOr<Report> MakeReport(const Profile& profile, const Server& server,
                                  const Settings& settings);

using Baselines = std::array<std::optional<Baseline>, kBaselines>;
// Without those that do not apply.
Baselines MakeBaselines(const Profile& profile, const Server& server, int batch);

// The server to plan for; the published one if `topology` is empty.
absl::StatusOr<Server> ServerFor(const std::string& topology, const Settings& settings);

}  // namespace thimble::harmony
