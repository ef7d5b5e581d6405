#include "allocator/offline/harmony/report.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/base/bytes.h"
#include "allocator/base/quote.h"
#include "allocator/base/status_macros.h"
#include "allocator/offline/harmony/search.h"
#include "allocator/offline/harmony/shape.h"
#include "allocator/offline/harmony/validator.h"

namespace thimble::harmony {
namespace {

std::string Text(double bytes) { return FormatBytes(static_cast<Bytes>(bytes)); }

double LayerBytes(const Costs& costs, Rules rules, Pass pass, int layer) {
  const Pack one = {layer, layer};
  return rules == Rules::kHarmony ? costs.PeakBytes(pass, 1, one) : TaskBytes(costs, pass, 1, one);
}

absl::Status CheckLayers(const Costs& costs, const Server& server, Rules rules) {
  double most = 0;
  int worst = 0;
  Pass when = Pass::kForward;
  for (int layer = 0; layer < costs.layer_count(); ++layer) {
    for (const Pass pass : {Pass::kForward, Pass::kBackward}) {
      const double bytes = LayerBytes(costs, rules, pass, layer);
      if (bytes <= most) continue;
      most = bytes;
      worst = layer;
      when = pass;
    }
  }
  if (most < server.memory_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("layer ", worst, " needs ", Text(most), " in ",
                   when == Pass::kForward ? "forward" : "backward", " at microbatch 1, memory is ",
                   Text(server.memory_bytes), ": give each GPU more than ",
                   static_cast<Bytes>(most), " bytes, or split the layer"));
}

absl::Status CheckSettings(const Server& server, const Settings& settings) {
  const int gpus = server.gpu_count();
  if (settings.batch < 1) {
    return absl::InvalidArgumentError(
        "batch is missing: give the number of samples in an iteration");
  }
  if (settings.mode == Mode::kDataParallel && settings.batch % gpus != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("batch ", settings.batch, " cannot be split evenly among ", gpus,
                     " GPUs: write ", (settings.batch / gpus + 1) * gpus, ", or mode pp"));
  }
  return absl::OkStatus();
}

absl::Status CheckHost(const Costs& costs, const Server& server, const Schedule& schedule) {
  if (server.host_bytes == 0) return absl::OkStatus();
  double bytes = HostBytes(costs);
  for (const Action& action : schedule.actions) {
    if (WaitsOnHost(action)) bytes += action.bytes;
  }
  if (bytes <= server.host_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("the plan needs ", Text(bytes),
                                                   " of host memory, but host_memory is ",
                                                   Text(server.host_bytes)));
}

// The largest fused pack that fits, for every size that divides the batch; the rest at its best
// sizes.
double ComputeBound(const Costs& costs, const Server& server, int batch) {
  double bound = std::numeric_limits<double>::infinity();
  const double memory = server.memory_bytes;
  const auto best = [&](Pass pass, int layers) {
    double least = layers == 0 ? 0 : std::numeric_limits<double>::infinity();
    for (int size = 1; size <= std::min(batch, costs.largest()) && layers > 0; ++size) {
      bool fits = batch % size == 0;
      for (int layer = 0; layer < layers && fits; ++layer) {
        fits = costs.PeakBytes(pass, size, {layer, layer}) <= memory;
      }
      if (fits) least = std::min(least, costs.Seconds(pass, size, {0, layers - 1}) * batch / size);
    }
    return least;
  };
  const int last = costs.layer_count() - 1;
  for (int size = 1; size <= std::min(batch, costs.largest()); ++size) {
    if (batch % size != 0) continue;
    int first = last + 1;
    while (first > 0) {
      const Pack pack = {first - 1, last};
      const double input = costs.InputBytes(size, pack.first);
      const double copies = pack.first > 0 ? 3 : 2;
      if (costs.PeakBytes(Pass::kBackward, size, pack) + copies * input > memory) break;
      --first;
    }
    if (first > last) continue;
    const double fused = costs.Seconds(Pass::kBackward, size, {first, last}) * batch / size;
    bound = std::min(bound, fused + best(Pass::kForward, first) + best(Pass::kBackward, first));
  }
  return bound / server.gpu_count();
}

std::optional<Schedule> PublishedPlan(const Costs& costs, const Server& server,
                                      const Settings& settings) {
  std::optional<Schedule> best;
  for (const Mode mode : {Mode::kPipeline, Mode::kDataParallel}) {
    if (settings.mode.value_or(mode) != mode) continue;
    if (mode == Mode::kDataParallel && settings.batch % server.gpu_count() != 0) continue;
    PublishedSearch search;
    search.mode = mode;
    search.prefetch = settings.prefetch;
    search.packers =
        settings.packers.value_or(settings.prefetch ? DefaultPackers() : PackersOfTheRuns());
    for (Schedule& found : SearchPublished(costs, server, settings.batch, search)) {
      if (!best.has_value() || found.seconds < best->seconds) best = std::move(found);
    }
  }
  return best;
}

}  // namespace

const char* NameOf(BaselineKind kind) {
  constexpr const char* kNames[kBaselines] = {"lru_dp",
                                              "lru_dp_recompute",
                                              "lru_pp",
                                              "lru_pp_recompute",
                                              "harmony_dp",
                                              "harmony_pp",
                                              "harmony_dp_prefetch",
                                              "harmony_pp_prefetch"};
  return kNames[kind];
}

absl::StatusOr<Report> MakeReport(const Profile& profile, const Server& server,
                                  const Settings& settings) {
  THIMBLE_RETURN_IF_ERROR(CheckSettings(server, settings));
  const Costs costs(profile, settings.batch);
  THIMBLE_RETURN_IF_ERROR(CheckLayers(costs, server, settings.rules));
  Report report;
  report.compute_bound = ComputeBound(costs, server, settings.batch);

  std::optional<Schedule> found;
  if (settings.rules == Rules::kHarmony) {
    report.swap_limit = settings.swap_limit.value_or(DefaultSwapLimit(costs, settings.batch));
    found = PublishedPlan(costs, server, settings);
  } else {
    SearchOptions options;
    options.may_pipeline = settings.mode != Mode::kDataParallel;
    options.may_split_data = settings.mode != Mode::kPipeline;
    options.may_keep = settings.keep;
    options.may_reside = settings.resident;
    options.seconds = settings.seconds;
    options.swap_limit = settings.swap_limit;
    std::optional<FoundPlan> best = SearchPlans(costs, server, settings.batch, options);
    if (best.has_value()) {
      report.swap_limit = best->swap_limit;
      found = std::move(best->schedule);
    }
  }
  if (!found.has_value()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no plan fits in ", Text(server.memory_bytes),
                     " of memory, though every layer does: give each GPU more"));
  }
  THIMBLE_RETURN_IF_ERROR(ValidateSchedule(costs, server, *found));
  THIMBLE_RETURN_IF_ERROR(CheckHost(costs, server, *found));
  report.schedule = *std::move(found);
  return report;
}

Baselines MakeBaselines(const Profile& profile, const Server& server, int batch) {
  const Costs costs(profile, batch);
  Baselines baselines;
  const Mode modes[] = {Mode::kDataParallel, Mode::kPipeline};
  for (int i = 0; i < 2; ++i) {
    for (const bool recompute : {false, true}) {
      baselines[kLruDp + 2 * i + (recompute ? 1 : 0)] =
          LruBaseline(costs, server, batch, modes[i], recompute);
    }
    if (modes[i] == Mode::kDataParallel && batch % server.gpu_count() != 0) continue;
    const std::pair<BaselineKind, PublishedSearch> searches[] = {
        {kHarmonyDp, {modes[i], /*prefetch=*/false, PackersOfTheRuns()}},
        {kHarmonyDpPrefetch, {modes[i], /*prefetch=*/true, DefaultPackers()}}};
    for (const auto& [kind, search] : searches) {
      for (const Schedule& found : SearchPublished(costs, server, batch, search)) {
        Baseline one;
        one.seconds = found.seconds;
        one.swap_bytes = found.swap_bytes();
        one.compute_fraction = found.compute_fraction;
        one.microbatch = found.plan.tasks.back().microbatches[0];
        baselines[kind + i] = one;
      }
    }
  }
  return baselines;
}

absl::StatusOr<Server> ServerFor(const std::string& topology, const Settings& settings) {
  if (settings.memory_bytes <= 0) {
    return absl::InvalidArgumentError(
        "memory is missing: give the bytes of each GPU, such as 10GiB");
  }
  if (topology.empty()) {
    if (settings.gpus == 0) {
      return absl::InvalidArgumentError("gpus is missing: give a number from 1 to 8");
    }
    return PublishedServer(settings.gpus, settings.memory_bytes);
  }
  THIMBLE_ASSIGN_OR_RETURN(Server server, ReadTopologyFile(topology, settings.memory_bytes));
  if (settings.gpus > server.gpu_count()) {
    return absl::InvalidArgumentError(absl::StrCat("gpus ", settings.gpus, " is more than the ",
                                                   server.gpu_count(), " that ", Quote(topology),
                                                   " describes"));
  }
  if (settings.gpus == 0) return server;
  server.gpus.resize(settings.gpus);
  const auto is_gone = [&](const Nvlink& link) {
    return std::max(link.a, link.b) >= settings.gpus;
  };
  server.nvlinks.erase(std::remove_if(server.nvlinks.begin(), server.nvlinks.end(), is_gone),
                       server.nvlinks.end());
  return server;
}

}  // namespace thimble::harmony
