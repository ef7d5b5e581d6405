#include "allocator/offline/harmony/simulator.h"

#include <limits>

#include "allocator/offline/harmony/program.h"
#include "allocator/offline/harmony/program_run.h"

namespace thimble::harmony {
namespace {

constexpr std::uint64_t kWorkPerOp = 8;  // to build an op, in ops looked at

// GPU 0 with its share of the bandwidth, if all GPUs are equal and under one switch: then all do
// the same at the same time.
std::optional<Server> OneForAll(const Server& server) {
  for (const Gpu& gpu : server.gpus) {
    if (gpu.under != server.gpus[0].under ||
        gpu.link_bytes_per_second != server.gpus[0].link_bytes_per_second) {
      return std::nullopt;
    }
  }
  Server one = server;
  one.gpus.resize(1);
  one.nvlinks.clear();
  for (Switch& each : one.switches) each.uplink_bytes_per_second /= server.gpu_count();
  return one;
}

}  // namespace

Simulator::Simulator(const Costs& costs, const Server& server)
    : costs_(costs),
      server_(server),
      network_(server),
      one_for_all_(OneForAll(server)),
      network_of_one_(one_for_all_.has_value() ? std::optional<Network>(*one_for_all_)
                                               : std::nullopt) {}

Simulator::Outcome Simulator::Try(const Plan& plan, double most_seconds) {
  const bool is_one = plan.mode == Mode::kDataParallel && one_for_all_.has_value();
  const Server& server = is_one ? *one_for_all_ : server_;
  const Program program = BuildProgram(costs_, server_, plan, is_one);
  ProgramRun run(program, is_one ? *network_of_one_ : network_, server);
  const bool is_done = run.Go(most_seconds);
  work_ += kWorkPerOp * program.ops.size() + run.work();
  Outcome outcome;
  outcome.seconds = is_done ? run.now() : std::numeric_limits<double>::infinity();
  for (const Op& op : program.ops) {
    const Stream stream = op.action.stream;
    if (stream == Stream::kIn || stream == Stream::kOut) outcome.swap_bytes += op.action.bytes;
    if (WaitsOnHost(op.action)) outcome.host_bytes += op.action.bytes;
  }
  if (is_one) outcome.swap_bytes *= plan.gpus;
  if (is_one) outcome.host_bytes *= plan.gpus;
  return outcome;
}

std::optional<Schedule> Simulator::Run(const Plan& plan) {
  const Program program = BuildProgram(costs_, server_, plan);
  ProgramRun run(program, network_, server_);
  if (!run.Go(std::numeric_limits<double>::infinity())) return std::nullopt;
  Schedule schedule;
  schedule.plan = plan;
  schedule.actions = run.Actions();
  schedule.peak_bytes = run.Peak();
  AddUp(schedule);
  return schedule;
}

}  // namespace thimble::harmony
