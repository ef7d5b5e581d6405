// A plan for one iteration and what it is worth.
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
  std::optional<Mode> mode;  // nothing: whichever is faster
  Rules rules = Rules::kThimble;
  // Of rules harmony. Nothing: the scheduler's own packers with prefetch, those of the published
  // runs without, so that the figures that are known come out.
  bool prefetch = false;
  std::optional<PackerList> packers;
  double seconds = 4;    // of search
  bool keep = true;      // activations may stay for the backward instead of being computed again
  bool resident = true;  // packs may stay on their GPU between iterations, and be updated there
  // Bytes between host and GPUs that a plan may move before that counts as lost time; 0: any.
  // Nothing: DefaultSwapLimit().
  std::optional<double> swap_limit;
};

enum BaselineKind {
  kLruDp,
  kLruDpRecompute,
  kLruPp,
  kLruPpRecompute,
  kHarmonyDp,  // the published search, without prefetch, with the packers of the published runs
  kHarmonyPp,
  kHarmonyDpPrefetch,  // with prefetch, and with all packers that its scheduler takes unless told
  kHarmonyPpPrefetch,
  kBaselines
};
const char* NameOf(BaselineKind kind);

struct Report {
  Schedule schedule;  // has passed ValidateSchedule()
  // The least that all GPUs have to compute if every layer but those of the fused pack is run
  // again, with microbatches that divide the batch; infinite if there are none that fit.
  double compute_bound = 0;
  double swap_limit = 0;  // under which the plan was made
};

// kInvalidArgument for settings that cannot be; kResourceExhausted if memory does not suffice, with
// the layer that needs most and how much would do.
absl::StatusOr<Report> MakeReport(const Profile& profile, const Server& server,
                                  const Settings& settings);

using Baselines = std::array<std::optional<Baseline>, kBaselines>;
// Nothing for those that do not apply.
Baselines MakeBaselines(const Profile& profile, const Server& server, int batch);

// The server that is meant: `topology` empty, the published one.
absl::StatusOr<Server> ServerFor(const std::string& topology, const Settings& settings);

}  // namespace thimble::harmony
