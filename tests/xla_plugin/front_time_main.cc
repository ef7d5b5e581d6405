// Measures the driver calls and the time of an allocation and a free through the front. See --help.
#include <dlfcn.h>
#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include "allocator/thimble.h"
#include "xla_plugin/driver_front/cuda_abi.h"
#include "xla_plugin/driver_front/driver_front.h"
#include "xla_plugin/driver_front/real_driver.h"
#include "xla_plugin/driver_front/served.h"

namespace thimble::xla {
namespace {

constexpr char kHelp[] =
    R"(front_time

Driver calls and nanoseconds per pair of one allocation and one free of 1 KiB, each thread on a
stream of its own, at 1 and at 4 threads (wall time by the pairs of one thread):
  async     cuMemAllocAsync, cuMemFreeAsync
  pool      cuMemAllocFromPoolAsync, which XLA calls, cuMemFreeAsync
  default   cuMemAllocAsync, cuMemFreeAsync on the default stream
  arena     thimble_allocate, thimble_free: no front
The driver is the simulated one, whose calls take locks of its own. The best of 300 repetitions, of
five at 4 threads.
)";

constexpr const char* kDriver = "tests/simgpu/driver/libcuda.so.1";
constexpr std::size_t kBytes = 1024;
constexpr int kMostThreads = 4;

void Check(CUresult result, const char* what) {
  if (result == kSuccess) return;
  std::fprintf(stderr, "%s: error %d\n", what, result);
  std::exit(1);
}

struct Driver {
  void (*watch)(void (*line)(const char* text)) = nullptr;
  CUresult (*set_current)(CUcontext context) = nullptr;
  CUcontext context = nullptr;
  CUmemoryPool pool = nullptr;
  std::vector<CUstream> streams;  // one per thread
};

Driver Open() {
  setenv("SIMGPU_CONF", "memory:1GiB", /*overwrite=*/1);
  const char* wrong = thimble_front_open(kDriver);
  if (wrong == nullptr) wrong = thimble_front_start("", 0, 0);
  if (wrong != nullptr) {
    std::fprintf(stderr, "%s\n", wrong);
    std::exit(1);
  }
  void* const library = dlopen(kDriver, RTLD_NOW | RTLD_LOCAL);
  Driver driver;
  driver.watch = reinterpret_cast<decltype(driver.watch)>(dlsym(library, "simgpu_watch"));
  driver.set_current =
      reinterpret_cast<decltype(driver.set_current)>(dlsym(library, "cuCtxSetCurrent"));
  Check(Real().cuDevicePrimaryCtxRetain(&driver.context, 0), "cuDevicePrimaryCtxRetain");
  Check(Real().cuDeviceGetDefaultMemPool(&driver.pool, 0), "cuDeviceGetDefaultMemPool");
  Check(driver.set_current(driver.context), "cuCtxSetCurrent");
  for (int thread = 0; thread < kMostThreads; ++thread) {
    driver.streams.push_back(nullptr);
    Check(Real().cuStreamCreate(&driver.streams.back(), kNonBlocking), "cuStreamCreate");
  }
  return driver;
}

enum class Way { kAsync, kPool, kDefault, kArena };

void Pair(const Driver& driver, Way way, int thread) {
  const CUstream own = driver.streams[static_cast<std::size_t>(thread)];
  const CUstream stream = way == Way::kDefault ? nullptr : own;
  if (way == Way::kArena) {
    void* block = nullptr;
    const auto number = reinterpret_cast<std::uintptr_t>(stream);
    Check(thimble_allocate(thimble_front_arena(0), kBytes, 0, number, 0, &block), "allocate");
    Check(thimble_free(thimble_front_arena(0), block, number), "free");
    return;
  }
  CUdeviceptr pointer = 0;
  Check(way == Way::kPool ? cuMemAllocFromPoolAsync(&pointer, kBytes, driver.pool, stream)
                          : cuMemAllocAsync(&pointer, kBytes, stream),
        "cuMemAllocAsync");
  Check(cuMemFreeAsync(pointer, stream), "cuMemFreeAsync");
}

std::atomic<int> calls{0};

int CallsPerPair(const Driver& driver, Way way) {
  for (int round = 0; round < 10; ++round) Pair(driver, way, 0);
  calls = 0;
  driver.watch([](const char* /*text*/) { ++calls; });
  Pair(driver, way, 0);
  driver.watch(nullptr);
  return calls;
}

double NanosecondsPerPair(const Driver& driver, Way way, int threads) {
  // One thread is best timed between two interruptions; several have to meet.
  const int pairs = threads == 1 ? 2000 : 100000;
  const int repetitions = threads == 1 ? 300 : 5;
  double best = std::numeric_limits<double>::max();
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    std::atomic<int> ready{0};
    std::vector<std::thread> workers;
    std::vector<std::chrono::nanoseconds> took(static_cast<std::size_t>(threads));
    for (int thread = 0; thread < threads; ++thread) {
      workers.emplace_back([&, thread] {
        Check(driver.set_current(driver.context), "cuCtxSetCurrent");
        for (int round = 0; round < 100; ++round) Pair(driver, way, thread);
        for (++ready; ready < threads;) std::this_thread::yield();
        const auto begin = std::chrono::steady_clock::now();
        for (int pair = 0; pair < pairs; ++pair) Pair(driver, way, thread);
        took[static_cast<std::size_t>(thread)] = std::chrono::steady_clock::now() - begin;
      });
    }
    for (std::thread& worker : workers) worker.join();
    const auto longest = *std::max_element(took.begin(), took.end());
    best = std::min(best, static_cast<double>(longest.count()) / pairs);
  }
  return best;
}

int Main(int argc, char** argv) {
  if (argc > 1) {
    std::fputs(kHelp, stdout);
    return std::strcmp(argv[1], "--help") == 0 ? 0 : 2;
  }
  const Driver driver = Open();
  struct {
    const char* name;
    Way way;
  } const rows[] = {{"async", Way::kAsync},
                    {"pool", Way::kPool},
                    {"default", Way::kDefault},
                    {"arena", Way::kArena}};
  std::printf("%-8s %12s %12s %12s\n", "", "driver calls", "1 thread ns", "4 threads ns");
  for (const auto& row : rows) {
    std::printf("%-8s %12d", row.name, CallsPerPair(driver, row.way));
    for (const int threads : {1, kMostThreads}) {
      std::printf(" %12.0f", NanosecondsPerPair(driver, row.way, threads));
      std::fflush(stdout);
    }
    std::printf("\n");
  }
  return 0;
}

}  // namespace
}  // namespace thimble::xla

int main(int argc, char** argv) { return thimble::xla::Main(argc, argv); }
