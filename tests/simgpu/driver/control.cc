#include "tests/simgpu/driver/control.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/simgpu/driver/simulator.h"

using simgpu::Account;
using simgpu::Address;
using simgpu::Kind;
using simgpu::Outcome;
using simgpu::PageCounts;
using simgpu::Piece;
using simgpu::Place;
using simgpu::Simulator;
using simgpu::VirtualCounts;
using simgpu::Work;

namespace {

std::size_t Of(const Account& account, Kind kind) {
  return account.by_kind[static_cast<std::size_t>(kind)];
}

constexpr double kMiB = 1 << 20;

// What is not of one device: chunks on the host, managed pages, and copies by kinds of memory.
void PrintHost(Simulator& simulator) {
  const Account host = simulator.memory.AccountOf(simgpu::kHost);
  if (host.peak > 0) {
    std::fprintf(stderr, "simgpu: host  %.1f MiB taken (cuMemCreate), peak %.1f MiB\n",
                 host.taken / kMiB, host.peak / kMiB);
  }
  for (int device = 0; device < simulator.options.gpus; ++device) {
    const PageCounts pages = simulator.memory.PagesOf(device);
    if (pages.moved.faults == 0 && pages.peak == 0) continue;
    std::fprintf(stderr,
                 "simgpu: %d managed: %lu faults, %.1f MiB in (%.1f prefetched), %.1f MiB out, "
                 "%.1f MiB here, peak %.1f MiB\n",
                 device, pages.moved.faults, pages.moved.in / kMiB, pages.prefetched / kMiB,
                 pages.moved.out / kMiB, pages.resident / kMiB, pages.peak / kMiB);
  }
  const std::string copied = simulator.traffic.Text();
  if (!copied.empty()) std::fprintf(stderr, "simgpu: copied %s\n", copied.c_str());
}

int CurrentDevice() {
  const auto context = Simulator::Get().contexts.Current();
  return context == nullptr ? simgpu::Memory::kAnyDevice : context->device;
}

// Whether `device` may use what is at these addresses. Everything that is not device memory passes.
Outcome Check(const std::vector<Address>& addresses, int device) {
  Simulator& simulator = Simulator::Get();
  std::vector<Piece> ignored;
  for (const Address address : addresses) {
    if (!simulator.memory.Contains(address)) continue;
    const Outcome outcome = simulator.memory.Translate(address, 1, device, &ignored);
    if (!outcome.ok()) return outcome;
  }
  return simgpu::Success();
}

void PrintTimes(Simulator& simulator) {
  if (!simulator.clock.runs()) return;
  for (int device = 0; device < simulator.options.gpus; ++device) {
    const simgpu::Clock::Summary times = simulator.clock.SummaryOf(device);
    std::fprintf(stderr,
                 "simgpu: %d simulated %s: compute %.6f s, copies in %.6f s, out %.6f s; waited "
                 "for the host %.3f s\n",
                 device, simulator.options.clock.c_str(), times.compute_seconds, times.in_seconds,
                 times.out_seconds, times.starved_seconds);
  }
  for (const auto& [what, seconds] : simulator.clock.Longest(5)) {
    std::fprintf(stderr, "simgpu: %.6f s for %.100s\n", seconds, what.c_str());
  }
}

void PrintRaces(Simulator& simulator) {
  const double all = static_cast<double>(simulator.launches.all);
  const double seen = static_cast<double>(simulator.launches.seen);
  std::fprintf(stderr, "simgpu: %.0f launches, arguments of %.2f %% looked at", all,
               all == 0 ? 100 : 100 * seen / all);
  if (simulator.races.are_watched()) {
    std::fprintf(stderr, "; races watched, %zu blocks reported", simulator.races.block_count());
  }
  std::fputc('\n', stderr);
}

// Prints at process exit what nvidia-smi would have shown last, and what was never given back. This
// is not a list of mistakes, because a framework keeps most of its memory until the end.
__attribute__((destructor)) void PrintSummary() {
  Simulator& simulator = Simulator::Get();
  if (!simulator.options.summary || !simulator.is_initialized()) return;
  for (int device = 0; device < simulator.options.gpus; ++device) {
    const Account account = simulator.memory.AccountOf(device);
    std::fprintf(stderr,
                 "simgpu: %d %s  %.1f MiB taken (cuMemAlloc %.1f, cuMemCreate %.1f, pools %.1f), "
                 "peak %.1f of %.1f MiB\n",
                 device, simulator.options.NameOf(device).c_str(), account.taken / kMiB,
                 Of(account, Kind::kPlain) / kMiB, Of(account, Kind::kVirtual) / kMiB,
                 Of(account, Kind::kPool) / kMiB, account.peak / kMiB, account.total / kMiB);
  }
  PrintHost(simulator);
  PrintTimes(simulator);
  PrintRaces(simulator);
  const VirtualCounts counts = simulator.memory.CountVirtual();
  std::fprintf(stderr, "simgpu: %zu chunks, %zu mappings, %zu reservations, %lu illegal calls\n",
               counts.chunks, counts.mappings, counts.reservations, simulator.log.illegal_calls());
}

}  // namespace

extern "C" {

CUresult simgpu_check(const void* pointer, const char* who) {
  Simulator::Get().results.Launched();
  const Outcome outcome = Check({reinterpret_cast<Address>(pointer)}, CurrentDevice());
  if (!outcome.ok()) Simulator::Get().log.WriteIllegal(std::string(who) + ": " + outcome.illegal);
  return outcome.code;
}

CUresult simgpu_submit(const simgpu_work* asked) {
  std::vector<Address> addresses;
  Work work;
  for (size_t i = 0; i < asked->pointer_count; ++i) {
    const auto address = reinterpret_cast<Address>(asked->pointers[i]);
    addresses.push_back(address);
    work.operands.push_back({address, 0});
  }
  work.type = CU_GRAPH_NODE_TYPE_KERNEL;
  work.name = asked->name;
  work.check = [addresses, device = CurrentDevice()] { return Check(addresses, device); };
  work.run = [check = work.check] {
    Simulator::Get().results.Launched();
    return check();
  };
  work.demand.kind = simgpu::Demand::Kind::kKernel;
  work.demand.device = std::max(CurrentDevice(), 0);
  work.demand.flops = asked->flops;
  work.demand.simd_flops = asked->simd_flops;
  work.demand.math = static_cast<simgpu::Math>(asked->math);
  work.demand.bytes = asked->bytes;
  work.demand.link_bytes = asked->link_bytes;
  Simulator& simulator = Simulator::Get();
  simulator.launches.Count(/*is_seen=*/true);
  const Outcome outcome = simulator.Start(asked->stream, work);
  if (!outcome.illegal.empty()) {
    simulator.log.WriteIllegal(std::string(asked->name) + ": " + outcome.illegal);
  }
  return outcome.code;
}

void simgpu_block_begin(CUdeviceptr pointer, size_t bytes) {
  Simulator::Get().races.Begin(pointer, bytes);
}

void simgpu_block_end(CUdeviceptr pointer) { Simulator::Get().races.End(pointer); }

void simgpu_restart(const char* conf) { simgpu::Restart(conf); }

void simgpu_fault(const char* faults) { Simulator::Get().faults.Set(faults); }

void simgpu_provoke(int on) { simgpu::Log::Provoke(on != 0); }

void simgpu_watch(void (*line)(const char* text)) { Simulator::Get().log.SetSink(line); }

int simgpu_hold(CUstream stream) {
  const auto found = Simulator::Get().FindStream(stream);
  if (found != nullptr) found->Hold();
  return found != nullptr;
}

int simgpu_resume(CUstream stream) {
  const auto found = Simulator::Get().FindStream(stream);
  if (found != nullptr) found->Release();
  return found != nullptr;
}

int simgpu_get_memory(int device, simgpu_memory* memory) {
  Simulator& simulator = Simulator::Get();
  if (!simulator.IsDevice(device)) return 0;
  const Account account = simulator.memory.AccountOf(device);
  *memory = {account.total,
             account.taken,
             account.peak,
             Of(account, Kind::kPlain),
             Of(account, Kind::kVirtual),
             Of(account, Kind::kPool)};
  return 1;
}

void simgpu_get_counts(simgpu_counts* counts) {
  Simulator& simulator = Simulator::Get();
  const VirtualCounts virtual_counts = simulator.memory.CountVirtual();
  *counts = {simulator.log.illegal_calls(),
             virtual_counts.chunks,
             virtual_counts.mappings,
             virtual_counts.reservations,
             simulator.events.size(),
             simulator.streams.size(),
             static_cast<std::size_t>(simulator.contexts.LiveRetains())};
}

void simgpu_get_host(simgpu_host* host) {
  const Account account = Simulator::Get().memory.AccountOf(simgpu::kHost);
  *host = {account.taken, account.peak, Simulator::Get().memory.managed()};
}

int simgpu_get_times(int device, simgpu_times* times) {
  Simulator& simulator = Simulator::Get();
  if (!simulator.IsDevice(device)) return 0;
  const simgpu::Clock::Summary summary = simulator.clock.SummaryOf(device);
  *times = {summary.compute_seconds, summary.in_seconds, summary.out_seconds};
  return 1;
}

int simgpu_get_pages(int device, simgpu_pages* pages) {
  Simulator& simulator = Simulator::Get();
  if (!simulator.IsDevice(device)) return 0;
  const PageCounts counts = simulator.memory.PagesOf(device);
  *pages = {counts.resident, counts.peak,       counts.moved.faults,
            counts.moved.in, counts.prefetched, counts.moved.out};
  return 1;
}

size_t simgpu_get_traffic(int from, int to) {
  return Simulator::Get().traffic.Between(static_cast<Place>(from), static_cast<Place>(to));
}

}  // extern "C"
