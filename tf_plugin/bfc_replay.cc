// Replays a trace on the real tsl::BFCAllocator of the loaded TensorFlow, without any memory behind
// it: BFC only computes with addresses.
#include "tf_plugin/bfc_replay.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/log/globals.h"
#include "xla/tsl/framework/allocator.h"
#include "xla/tsl/framework/bfc_allocator.h"

namespace thimble::tf {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kQuantum = 2 * kMiB;
constexpr std::uint64_t kLargest = std::uint64_t{8} << 40;  // no device is larger

struct Op {
  std::uint64_t bytes;  // 0: a free
  std::size_t id;
};

struct Trace {
  std::vector<Op> ops;
  std::size_t ids = 0;
  std::uint64_t max_live = 0;
};

// The one region that TensorFlow takes when memory may not grow.
class OneRegion final : public tsl::SubAllocator {
 public:
  OneRegion() : SubAllocator({}, {}) {}

  void* Alloc(std::size_t /*alignment*/, std::size_t bytes, std::size_t* received) override {
    constexpr std::uintptr_t kAddress = std::uintptr_t{1} << 40;
    if (taken_) return nullptr;
    taken_ = true;
    *received = bytes;
    return reinterpret_cast<void*>(kAddress);
  }
  void Free(void* /*region*/, std::size_t /*bytes*/) override {}
  bool SupportsCoalescing() const override { return false; }
  tsl::AllocatorMemoryType GetMemoryType() const override {
    return tsl::AllocatorMemoryType::kDevice;
  }

 private:
  bool taken_ = false;
};

// Set up as TensorFlow does for a GPU, but without waiting for frees: there is one thread.
tsl::BFCAllocator::Options GpuOptions() {
  tsl::BFCAllocator::Options options;
  options.allow_growth = false;
  options.allow_retry_on_failure = false;
  options.garbage_collection = true;
  return options;
}

bool Fits(const Trace& trace, std::uint64_t capacity) {
  tsl::BFCAllocator bfc(std::make_unique<OneRegion>(), capacity, "bfc", GpuOptions());
  const tsl::AllocationAttributes attributes(/*retry_on_failure=*/false,
                                             /*allocation_will_be_logged=*/false,
                                             /*freed_by_func=*/nullptr);
  std::vector<void*> blocks(trace.ids, nullptr);
  bool fits = true;
  for (const Op& op : trace.ops) {
    void*& block = blocks[op.id];
    if (op.bytes == 0) {
      bfc.DeallocateRaw(std::exchange(block, nullptr));
      continue;
    }
    block = bfc.AllocateRaw(tsl::Allocator::kAllocatorAlignment, op.bytes, attributes);
    if (block == nullptr) {
      fits = false;
      break;
    }
  }
  for (void* const block : blocks) {
    if (block != nullptr) bfc.DeallocateRaw(block);
  }
  return fits;
}

std::uint64_t RoundUp(std::uint64_t bytes) { return (bytes + kQuantum - 1) / kQuantum * kQuantum; }

// Starts at the smallest capacity that could suffice, grows in longer and longer strides until one
// does, then bisects.
std::optional<std::uint64_t> FindFit(const Trace& trace) {
  constexpr std::uint64_t kFirstStrides = 256;  // the first is this part of the smallest capacity
  std::uint64_t too_small = RoundUp(std::max<std::uint64_t>(trace.max_live, 1));
  if (Fits(trace, too_small)) return too_small;
  std::uint64_t stride = RoundUp(too_small / kFirstStrides + 1);
  std::uint64_t enough = too_small + stride;
  while (!Fits(trace, enough)) {
    too_small = enough;
    stride *= 2;
    enough += stride;
    if (enough > kLargest) return std::nullopt;
  }
  while (enough - too_small > kQuantum) {
    const std::uint64_t middle = too_small + (enough - too_small) / 2 / kQuantum * kQuantum;
    (Fits(trace, middle) ? enough : too_small) = middle;
  }
  return enough;
}

// Skips lines that move no memory. Returns "" or what is wrong.
std::string Read(const char* path, Trace* trace) {
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path, "r"));
  if (file == nullptr) return std::string(path) + ": " + std::strerror(errno);
  std::unordered_map<std::uint64_t, Op> live;
  std::vector<std::size_t> spare_ids;
  std::uint64_t live_bytes = 0;
  char line[256];
  while (std::fgets(line, sizeof(line), file.get()) != nullptr) {
    unsigned long long id = 0;
    unsigned long long bytes = 0;
    if (std::sscanf(line, "A %llu %llu", &id, &bytes) == 2 && bytes > 0) {
      if (bytes > kLargest) return std::string(path) + ": a block larger than any device";
      if (spare_ids.empty()) spare_ids.push_back(trace->ids++);
      trace->ops.push_back({bytes, spare_ids.back()});
      spare_ids.pop_back();
      live[id] = trace->ops.back();
      live_bytes += bytes;
      trace->max_live = std::max(trace->max_live, live_bytes);
    } else if (std::sscanf(line, "F %llu", &id) == 1) {
      const auto freed = live.find(id);
      if (freed == live.end()) continue;  // of zero bytes
      trace->ops.push_back({0, freed->second.id});
      spare_ids.push_back(freed->second.id);
      live_bytes -= freed->second.bytes;
      live.erase(freed);
    }
  }
  return "";
}

std::string Fit(const char* path, std::uint64_t* bytes) {
  // The search runs out of memory on purpose; silence BFC's report about each time.
  absl::SetMinLogLevel(absl::LogSeverityAtLeast::kFatal);
  Trace trace;
  if (std::string error = Read(path, &trace); !error.empty()) return error;
  const std::optional<std::uint64_t> fit = FindFit(trace);
  if (!fit) return std::string(path) + ": does not fit in any device";
  *bytes = *fit;
  return "";
}

}  // namespace
}  // namespace thimble::tf

extern "C" __attribute__((visibility("default"))) const char* thimble_bfc_fit(const char* path,
                                                                              uint64_t* bytes) {
  const std::string error = thimble::tf::Fit(path, bytes);
  return error.empty() ? nullptr : (new std::string(error))->c_str();
}
