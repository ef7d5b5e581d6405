// Measures the cost of reporting an event.
//
//   bazel run -c opt //tests/bench:events
//
// Nanoseconds of processor time per event, with no log and with one that is written to a file, from
// one thread and from two at once. Google Benchmark prints them.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "allocator/arena/arena.h"
#include "allocator/base/check.h"
#include "tests/bench/device.h"

namespace thimble::bench {
namespace {

Arena& SharedArena() {
  static Device* const device = new Device(kGiB);
  static Arena* const arena = [] {
    auto made = Arena::Create(ArenaOptions(), &device->driver());
    THIMBLE_CHECK(made.ok(), "an arena can be made");
    return made->release();
  }();
  return *arena;
}

void Report(benchmark::State& state) {
  for (auto _ : state) SharedArena().MarkStep();
}

void StartLog(const benchmark::State& /*state*/) {
  const char* const folder = std::getenv("TMPDIR");
  const std::string path = absl::StrCat(folder == nullptr ? "/tmp" : folder, "/events.", getpid());
  THIMBLE_CHECK(SharedArena().StartLog(path, 0).ok(), "a log can be written");
  unlink(path.c_str());
}

void StopLog(const benchmark::State& /*state*/) {
  THIMBLE_CHECK(SharedArena().StopLog().ok(), "the log was written");
}

BENCHMARK(Report)->Name("off");
BENCHMARK(Report)->Name("on")->Setup(StartLog)->Teardown(StopLog);
BENCHMARK(Report)->Name("on")->Threads(2)->Setup(StartLog)->Teardown(StopLog);

}  // namespace
}  // namespace thimble::bench

BENCHMARK_MAIN();
