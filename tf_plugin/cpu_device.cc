#include "tf_plugin/cpu_device.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/log/log.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/common_runtime/gpu/gpu_process_state.h"
#include "tensorflow/core/common_runtime/threadpool_device.h"
#include "tensorflow/core/public/session_options.h"
#include "tf_plugin/announcing_device.h"
#include "tf_plugin/arenas.h"
#include "tf_plugin/device_allocator.h"
#include "tf_plugin/guarded_device.h"
#include "tf_plugin/tf_allocator.h"
#include "tf_plugin/tf_plugin.h"
#include "tf_plugin/tf_sub_allocator.h"
#include "xla/tsl/framework/bfc_allocator.h"

namespace thimble::tf {
namespace {

// The memory that TensorFlow's own CPU device reports. For a graph that does not fit into it, the
// graph optimizer computes sums in another order, so a different figure would change results.
constexpr tensorflow::Bytes kStatedCpuMemory{std::int64_t{256} << 20};

// TensorFlow's own CPU device, with its kernels and threads but with Thimble's allocator.
class CpuDevice : public tensorflow::ThreadPoolDevice {
 public:
  CpuDevice(const tensorflow::SessionOptions& options, const std::string& name,
            tsl::Allocator* allocator)
      : ThreadPoolDevice(options, name, kStatedCpuMemory, tensorflow::DeviceLocality(), allocator),
        allocator_(allocator),
        gpu_options_(options.config.gpu_options()) {}

  tsl::Allocator* GetAllocator(tsl::AllocatorAttributes attributes) override {
    // Memory that a GPU will read must be pinned; TensorFlow's CPU device does the same if there
    // are GPUs.
    if (attributes.gpu_compatible()) {
      auto* const gpus = tensorflow::GPUProcessState::singleton();
      if (gpus->HasGPUDevice()) return gpus->GetGpuHostAllocator(gpu_options_, /*numa_node=*/0);
    }
    return allocator_;
  }

 private:
  tsl::Allocator* const allocator_;
  const tensorflow::GPUOptions gpu_options_;
};

// Suffix of the names of logical CPU devices other than the first, in allocators and logs, as
// TensorFlow writes them.
std::string SuffixOf(int index) { return index == 0 ? "" : absl::StrCat("_", index); }

std::unique_ptr<tsl::Allocator> MakeAllocator(const Settings& settings, thimble_arena* arena,
                                              int index) {
  constexpr auto kMemoryType = tsl::AllocatorMemoryType::kHostPageable;
  if (settings.is_bfc()) {
    tsl::BFCAllocator::Options options;
    options.allow_growth = false;  // BFC at its best
    options.allow_retry_on_failure = settings.retry_ms > 0;
    return std::make_unique<tsl::BFCAllocator>(
        std::make_unique<TfSubAllocator>(arena, kMemoryType, /*index=*/0,
                                         std::vector<tsl::SubAllocator::Visitor>{},
                                         std::vector<tsl::SubAllocator::Visitor>{}),
        LimitOf(arena), absl::StrCat("CPU", SuffixOf(index), "_thimble_bfc"), options);
  }
  TfAllocator::Options options;
  options.name = absl::StrCat("CPU", SuffixOf(index), "_thimble");
  options.memory_type = kMemoryType;
  options.retry = absl::Milliseconds(settings.retry_ms);
  return std::make_unique<TfAllocator>(arena, options);
}

// One arena for each logical CPU device, as for each logical GPU; all sessions of the process share
// them.
struct CpuMemory {
  thimble_arena* arena;
  DeviceAllocator* allocator;
};

absl::StatusOr<CpuMemory> OpenMemory(const Settings& settings, int index) {
  DeviceSettings device;
  device.index = index;
  const absl::StatusOr<thimble_arena*> arena = OpenArena(settings, device);
  if (!arena.ok()) return arena.status();
  PublishArena(THIMBLE_TF_CPU - index, *arena);
  LOG(INFO) << "Thimble serves the CPU device"
            << (index == 0 ? std::string() : absl::StrCat(" CPU:", index)) << ": "
            << thimble_options(*arena);
  return CpuMemory{*arena, new DeviceAllocator(*arena, MakeAllocator(settings, *arena, index))};
}

absl::StatusOr<CpuMemory> MemoryOf(const Settings& settings, int index) {
  static absl::Mutex mutex(absl::kConstInit);
  static auto* const opened = new std::map<int, absl::StatusOr<CpuMemory>>;
  absl::MutexLock lock(&mutex);
  const auto found = opened->find(index);
  if (found != opened->end()) return found->second;
  return opened->emplace(index, OpenMemory(settings, index)).first->second;
}

std::unique_ptr<tensorflow::Device> MakeDevice(const Settings& settings, const CpuMemory& memory,
                                               const tensorflow::SessionOptions& options,
                                               const std::string& name) {
  using Guarded = GuardedDevice<CpuDevice>;
  if (!settings.swap) {
    return std::make_unique<Guarded>(memory.allocator, options, name, memory.allocator);
  }
  // Settings exclude BFC here.
  const Announcer announcer(memory.arena, static_cast<TfAllocator*>(memory.allocator->wrapped()));
  return std::make_unique<AnnouncingDevice<Guarded>>(announcer, memory.allocator, options, name,
                                                     memory.allocator);
}

absl::Status Refusal(const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat("Thimble: THIMBLE_CONF: ", status.message()));
}

}  // namespace

CpuDeviceFactory::CpuDeviceFactory(absl::StatusOr<Settings> settings)
    : settings_(std::move(settings)) {}

absl::Status CpuDeviceFactory::ListPhysicalDevices(std::vector<std::string>* devices) {
  devices->push_back("/physical_device:CPU:0");
  return absl::OkStatus();
}

absl::Status CpuDeviceFactory::CreateDevices(
    const tensorflow::SessionOptions& options, const std::string& name_prefix,
    std::vector<std::unique_ptr<tensorflow::Device>>* devices) {
  if (!settings_.ok()) return Refusal(settings_.status());
  const auto& counts = options.config.device_count();
  const auto count = counts.find("CPU");
  const int number = count == counts.end() ? 1 : count->second;
  for (int i = 0; i < number; ++i) {
    const absl::StatusOr<CpuMemory> memory = MemoryOf(*settings_, i);
    if (!memory.ok()) return Refusal(memory.status());
    devices->push_back(
        MakeDevice(*settings_, *memory, options, absl::StrCat(name_prefix, "/device:CPU:", i)));
  }
  return absl::OkStatus();
}

}  // namespace thimble::tf
