#include "tests/simgpu/driver/simulator.h"

#include <cstdio>
#include <cstdlib>
#include <new>

#include "tests/simgpu/driver/graph.h"

namespace simgpu {
namespace {

Simulator*& Instance() {
  static Simulator* simulator = nullptr;
  return simulator;
}

Options ReadOptions(const std::string& conf, std::string* error) {
  Options options;
  if (ParseOptions(conf, &options, error)) return options;
  return Options();  // cuInit fails, so nobody sees the difference
}

}  // namespace

Simulator::Simulator(const std::string& conf)
    : options(ReadOptions(conf, &error)),
      clock(options),
      memory(options),
      races(options, memory, host_memory, log),
      pools(options, memory),
      contexts(options),
      results(options.results, options.truth) {
  if (error.empty()) log.Open(options, &error);
  faults.Set(options.fault);
}

Simulator& Simulator::Get() {
  static std::once_flag once;
  std::call_once(once, [] {
    const char* const conf = std::getenv("SIMGPU_CONF");
    Instance() = new Simulator(conf == nullptr ? "" : conf);
  });
  return *Instance();
}

void Restart(const char* conf) {
  Simulator& old = Simulator::Get();
  // Replaces the machine in place, so that references refer to the new one. A stream's thread may
  // still use a few old objects, so it must be idle, as the header says.
  old.~Simulator();
  new (&old) Simulator(conf);
}

CUresult Simulator::Initialize() {
  if (!error.empty()) {
    std::fprintf(stderr, "simgpu: SIMGPU_CONF: %s\n", error.c_str());
    return CUDA_ERROR_INVALID_VALUE;
  }
  is_initialized_ = true;
  return options.gpus > 0 ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

std::shared_ptr<Stream> Simulator::FindStream(CUstream handle) const {
  if (handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
    const std::shared_ptr<Context> context = contexts.Current();
    return context == nullptr ? nullptr : context->default_stream;
  }
  return streams.Find(handle);
}

Outcome Simulator::Start(CUstream handle, const Work& work) {
  const std::shared_ptr<Stream> stream = FindStream(handle);
  if (stream == nullptr) {
    return Illegal(CUDA_ERROR_INVALID_HANDLE,
                   "stream " + Hex(reinterpret_cast<std::uintptr_t>(handle)) + " is not alive");
  }
  if (const std::shared_ptr<Graph> graph = stream->capture()) {
    graph->Append(work);
    return Success();
  }
  return stream->Submit(work);
}

Outcome Simulator::SynchronizeDevice(int device) {
  const Moment moment = races.AtAll(device);
  std::vector<std::shared_ptr<Stream>> all = streams.All();
  if (const std::shared_ptr<Context> context = contexts.Current()) {
    all.push_back(context->default_stream);
  }
  for (const std::shared_ptr<Stream>& stream : all) {
    if (stream->device() != device) continue;
    const Outcome outcome = stream->Synchronize();
    if (!outcome.ok()) return outcome;
  }
  clock.WaitUntil(clock.EndOf(device));  // of streams that are gone, too
  races.Learn(moment);
  pools.Waited(device);
  return Success();
}

}  // namespace simgpu
