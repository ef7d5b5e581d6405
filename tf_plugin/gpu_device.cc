#include "tf_plugin/gpu_device.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tensorflow/core/common_runtime/gpu/gpu_device.h"
#include "tensorflow/core/common_runtime/gpu/gpu_process_state.h"
#include "tensorflow/core/framework/device_factory.h"
#include "tf_plugin/announcing_device.h"
#include "tf_plugin/arenas.h"
#include "tf_plugin/device_allocator.h"
#include "tf_plugin/gpu_context.h"
#include "tf_plugin/guarded_device.h"
#include "tf_plugin/tf_allocator.h"
#include "xla/stream_executor/stream.h"

namespace thimble::tf {
namespace {

using tensorflow::BaseGPUDevice;

// Like TensorFlow's own, whose class no header declares.
class GpuDevice : public BaseGPUDevice {
 public:
  GpuDevice(const tensorflow::SessionOptions& options, const std::string& name,
            tensorflow::Bytes limit, const tensorflow::DeviceLocality& locality, tsl::TfDeviceId id,
            const std::string& description, tsl::Allocator* gpu_allocator,
            tsl::Allocator* cpu_allocator)
      : BaseGPUDevice(options, name, limit, locality, id, description, gpu_allocator, cpu_allocator,
                      /*sync_every_op=*/false),
        pinned_host_memory_(options.config.gpu_options().force_gpu_compatible()) {}

  tsl::Allocator* GetAllocator(tsl::AllocatorAttributes attributes) override {
    if (!attributes.on_host()) return gpu_allocator_;
    if (!attributes.gpu_compatible() && !pinned_host_memory_) return cpu_allocator_;
    return tensorflow::GPUProcessState::singleton()->GetGpuHostAllocator({}, /*numa_node=*/0);
  }

 private:
  const bool pinned_host_memory_;
};

using GuardedGpuDevice = GuardedDevice<GpuDevice>;

class AnnouncingGpuDevice final : public AnnouncingDevice<GuardedGpuDevice> {
 public:
  using AnnouncingDevice::AnnouncingDevice;
  ~AnnouncingGpuDevice() override {
    if (stock_context_ != nullptr) Info()->default_context = stock_context_;
  }

  // To be called once the device has its streams.
  void AnnounceCopies() {
    stock_context_ = Info()->default_context;
    announcer().SetStream(
        reinterpret_cast<std::uintptr_t>(compute_stream()->platform_specific_handle().stream));
    context_.reset(
        new GpuContext(*static_cast<tensorflow::GPUDeviceContext*>(stock_context_), &announcer()));
    Info()->default_context = context_.get();
  }

 private:
  // TensorFlow only exposes it as const, and offers no other way to replace a context.
  AcceleratorDeviceInfo* Info() {
    return const_cast<AcceleratorDeviceInfo*>(tensorflow_accelerator_device_info());
  }

  tensorflow::DeviceContext* stock_context_ = nullptr;  // owned by the base
  tensorflow::core::RefCountPtr<GpuContext> context_;
};

// The memory that a GPU with swapping reports. If TensorFlow's graph optimizer believes that a
// graph does not fit, it computes sums in another way and order, and copies tensors to the host
// itself. Results would then depend on the GPU's size.
constexpr tensorflow::Bytes kStatedMemory{std::int64_t{1} << 40};

class GpuDeviceFactory final : public tensorflow::BaseGPUDeviceFactory {
 public:
  static constexpr int kPriority = 220;  // above TensorFlow's own, 210

  explicit GpuDeviceFactory(bool announce) : announce_(announce) {}

  absl::Status CreateDevices(const tensorflow::SessionOptions& options,
                             const std::string& name_prefix,
                             std::vector<std::unique_ptr<tensorflow::Device>>* devices) override;

 private:
  std::unique_ptr<tensorflow::BaseGPUDevice> CreateGPUDevice(
      const tensorflow::SessionOptions& options, const std::string& name, tensorflow::Bytes limit,
      const tensorflow::DeviceLocality& locality, tsl::TfDeviceId id,
      const std::string& description, tsl::Allocator* gpu_allocator,
      tsl::Allocator* cpu_allocator) override;

  const bool announce_;
};

std::unique_ptr<BaseGPUDevice> GpuDeviceFactory::CreateGPUDevice(
    const tensorflow::SessionOptions& options, const std::string& name, tensorflow::Bytes limit,
    const tensorflow::DeviceLocality& locality, tsl::TfDeviceId id, const std::string& description,
    tsl::Allocator* gpu_allocator, tsl::Allocator* cpu_allocator) {
  auto* const ours = dynamic_cast<DeviceAllocator*>(gpu_allocator);
  if (ours == nullptr) {  // left to TensorFlow
    return std::make_unique<GpuDevice>(options, name, limit, locality, id, description,
                                       gpu_allocator, cpu_allocator);
  }
  auto* const thimble = dynamic_cast<TfAllocator*>(ours->wrapped());
  thimble_arena* const arena = FindArena(id.value());
  if (!announce_ || thimble == nullptr || arena == nullptr) {
    return std::make_unique<GuardedGpuDevice>(ours, options, name, limit, locality, id, description,
                                              gpu_allocator, cpu_allocator);
  }
  return std::make_unique<AnnouncingGpuDevice>(Announcer(arena, thimble), ours, options, name,
                                               kStatedMemory, locality, id, description,
                                               gpu_allocator, cpu_allocator);
}

absl::Status GpuDeviceFactory::CreateDevices(
    const tensorflow::SessionOptions& options, const std::string& name_prefix,
    std::vector<std::unique_ptr<tensorflow::Device>>* devices) {
  const std::size_t before = devices->size();
  const absl::Status status = BaseGPUDeviceFactory::CreateDevices(options, name_prefix, devices);
  if (!status.ok()) return status;
  for (std::size_t i = before; i < devices->size(); ++i) {
    auto* const device = dynamic_cast<AnnouncingGpuDevice*>((*devices)[i].get());
    if (device != nullptr) device->AnnounceCopies();
  }
  return status;
}

}  // namespace

void RegisterGpus(bool announce) {
  tensorflow::DeviceFactory::Register("GPU", std::make_unique<GpuDeviceFactory>(announce),
                                      GpuDeviceFactory::kPriority, /*is_pluggable_device=*/false);
}

}  // namespace thimble::tf
