#include "tf_plugin/process_state.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/log/log.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/gpu/gpu_bfc_allocator.h"
#include "tf_plugin/arenas.h"
#include "tf_plugin/device_allocator.h"
#include "tf_plugin/tf_allocator.h"
#include "tf_plugin/tf_sub_allocator.h"
#include "xla/stream_executor/gpu/gpu_init.h"
#include "xla/stream_executor/platform.h"
#include "xla/stream_executor/stream_executor.h"
#include "xla/tsl/framework/device_id_manager.h"

namespace thimble::tf {
namespace {

using tensorflow::GPUOptions;

// BFC, plus what its regions must know and BFC does not tell them: the stream.
class BfcFront final : public tensorflow::GPUBFCAllocator {
 public:
  // Takes ownership of `regions`.
  BfcFront(TfSubAllocator* regions, std::size_t bytes, const std::string& name,
           const Options& options)
      : GPUBFCAllocator(std::unique_ptr<tsl::SubAllocator>(regions), bytes, name, options),
        regions_(regions) {}

  void SetStreamAndPreallocateMemory(void* stream) override {
    regions_->SetStream(reinterpret_cast<std::uintptr_t>(stream));
  }

 private:
  TfSubAllocator* const regions_;  // owned by the base
};

// Reads the variable as BFC does: it overrides the program.
bool AllowGrowth(const GPUOptions& options) {
  const char* const forced = std::getenv("TF_FORCE_GPU_ALLOW_GROWTH");
  if (forced == nullptr) return options.allow_growth();
  const std::string value = forced;
  if (value == "true" || value == "false") return value == "true";
  LOG(ERROR) << "TF_FORCE_GPU_ALLOW_GROWTH is '" << value << "': use 'true' or 'false'.";
  return options.allow_growth();
}

absl::StatusOr<int> OrdinalOf(tsl::TfDeviceId id) {
  tsl::PlatformDeviceId ordinal;
  const absl::Status status =
      tsl::DeviceIdManager::TfToPlatformDeviceId(tsl::DeviceType("GPU"), id, &ordinal);
  if (!status.ok()) return status;
  return ordinal.value();
}

// The other GPUs among `peers` that can reach the memory of GPU `ordinal`. Several logical devices
// may share a GPU.
std::vector<int> PeerOrdinals(int ordinal, const std::vector<tsl::TfDeviceId>& peers) {
  std::vector<int> ordinals;
  const auto device = stream_executor::GPUMachineManager()->ExecutorForDevice(ordinal);
  if (!device.ok()) return ordinals;
  for (const tsl::TfDeviceId peer : peers) {
    const absl::StatusOr<int> other = OrdinalOf(peer);
    if (!other.ok() || *other == ordinal ||
        std::find(ordinals.begin(), ordinals.end(), *other) != ordinals.end()) {
      continue;
    }
    const auto executor = stream_executor::GPUMachineManager()->ExecutorForDevice(*other);
    if (executor.ok() && (*executor)->CanEnablePeerAccessTo(*device)) ordinals.push_back(*other);
  }
  return ordinals;
}

// Why Thimble leaves this GPU to TensorFlow; "" if Thimble serves it.
std::string ReasonToStay(const GPUOptions& options, std::size_t total_bytes) {
  if (options.per_process_gpu_memory_fraction() > 1.0 ||
      options.experimental().use_unified_memory()) {
    return "unified memory (a memory fraction above 1) cannot be mapped by Thimble";
  }
  if (!options.allocator_type().empty() && options.allocator_type() != "BFC") {
    return absl::StrCat("the program asks for the allocator type '", options.allocator_type(), "'");
  }
  if (total_bytes == 0) return "TensorFlow gives it no memory";
  return "";
}

}  // namespace

ProcessState::ProcessState(absl::StatusOr<Settings> settings) : settings_(std::move(settings)) {}

tsl::Allocator* ProcessState::GetGPUAllocator(const GPUOptions& options, tsl::TfDeviceId id,
                                              std::size_t total_bytes,
                                              const std::vector<tsl::TfDeviceId>& peers) {
  {
    tensorflow::mutex_lock lock(mu_);
    const auto index = static_cast<std::size_t>(id.value());
    if (index >= gpu_allocators_.size()) gpu_allocators_.resize(index + 1);
    const auto& allocator = gpu_allocators_[index].allocator;
    if (allocator != nullptr) return allocator.get();
    const absl::Status status = Serve(options, id, total_bytes, peers);
    if (status.ok()) return allocator.get();
    if (absl::IsInvalidArgument(status)) {
      LOG(ERROR) << "Thimble: THIMBLE_CONF: " << status.message() << ". GPU:" << index
                 << " is refused until it is right.";
      return nullptr;
    }
    LOG(WARNING) << "Thimble does not serve GPU:" << index << ": " << status.message()
                 << ". TensorFlow uses its own allocator.";
  }
  return GPUProcessState::GetGPUAllocator(options, id, total_bytes, peers);
}

absl::Status ProcessState::Serve(const GPUOptions& options, tsl::TfDeviceId id,
                                 std::size_t total_bytes,
                                 const std::vector<tsl::TfDeviceId>& peers) {
  if (!settings_.ok()) return settings_.status();
  if (std::string reason = ReasonToStay(options, total_bytes); !reason.empty()) {
    return absl::UnimplementedError(reason);
  }
  const absl::StatusOr<int> ordinal = OrdinalOf(id);
  if (!ordinal.ok()) return ordinal.status();
  const auto bus = static_cast<std::size_t>(BusIdForGPU(id));
  if (bus >= gpu_visitors_.size()) gpu_visitors_.resize(bus + 1);
  // Visitors register whole regions with a network card, and those must not change.
  const bool bfc = settings_->is_bfc() || !gpu_visitors_[bus].empty();

  DeviceSettings device;
  device.index = id.value();
  device.ordinal = *ordinal;
  device.limit = total_bytes;
  device.preallocate = !bfc && !AllowGrowth(options);  // BFC takes its regions by itself
  device.peers = PeerOrdinals(*ordinal, peers);
  const absl::StatusOr<thimble_arena*> arena = OpenArena(*settings_, device);
  if (!arena.ok()) return arena.status();

  AllocatorParts& parts = gpu_allocators_[static_cast<std::size_t>(id.value())];
  const auto& experimental = options.experimental();
  if (experimental.timestamped_allocator()) {
    parts.counter = std::make_unique<tensorflow::SharedCounter>();
  }
  if (bfc) {
    auto regions = std::make_unique<TfSubAllocator>(*arena, tsl::AllocatorMemoryType::kDevice,
                                                    *ordinal, gpu_visitors_[bus],
                                                    std::vector<tsl::SubAllocator::Visitor>{});
    tensorflow::GPUBFCAllocator::Options bfc_options;
    bfc_options.allow_growth = options.allow_growth();
    bfc_options.fragmentation_fraction = experimental.internal_fragmentation_fraction();
    bfc_options.allow_retry_on_failure = !experimental.disallow_retry_on_allocation_failure();
    parts.sub_allocator = regions.get();
    auto front =
        std::make_unique<BfcFront>(regions.release(), LimitOf(*arena),
                                   absl::StrCat("GPU_", id.value(), "_thimble_bfc"), bfc_options);
    if (parts.counter != nullptr) front->SetTimingCounter(parts.counter.get());
    parts.bfc_allocator = front.get();
    parts.allocator = std::make_unique<DeviceAllocator>(*arena, std::move(front));
  } else {
    TfAllocator::Options own;
    own.name = absl::StrCat("GPU_", id.value(), "_thimble");
    own.retry = experimental.disallow_retry_on_allocation_failure()
                    ? absl::ZeroDuration()
                    : absl::Milliseconds(settings_->retry_ms);
    own.timestamped = parts.counter != nullptr;
    parts.allocator =
        std::make_unique<DeviceAllocator>(*arena, std::make_unique<TfAllocator>(*arena, own));
  }
  PublishArena(id.value(), *arena);
  LOG(INFO) << "Thimble serves GPU:" << id.value() << " (" << parts.allocator->Name()
            << "): " << thimble_options(*arena);
  return absl::OkStatus();
}

}  // namespace thimble::tf
