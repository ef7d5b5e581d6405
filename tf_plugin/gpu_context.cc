#include "tf_plugin/gpu_context.h"

#include <utility>

#include "tf_plugin/announced_copy.h"

namespace thimble::tf {

using tensorflow::StatusCallback;
using tensorflow::Tensor;

// One stream for copies between GPUs, as in the stock context unless an experimental option asks
// for more. Such copies need no announcement: _Send and _Recv expose their tensors.
GpuContext::GpuContext(const tensorflow::GPUDeviceContext& stock, const Announcer* announcer)
    : GPUDeviceContext(stock.stream_id(), stock.stream(), stock.host_to_device_stream(),
                       stock.device_to_host_stream(), {stock.device_to_device_stream(0)},
                       stock.host_memory_allocator()),
      announcer_(announcer) {}

void GpuContext::CopyCPUTensorToDevice(const Tensor* source, tensorflow::Device* device,
                                       Tensor* target, StatusCallback done,
                                       bool sync_dst_compute) const {
  AnnounceCopy(*announcer_, nullptr, target, std::move(done), [&](StatusCallback announced) {
    GPUDeviceContext::CopyCPUTensorToDevice(source, device, target, std::move(announced),
                                            sync_dst_compute);
  });
}

void GpuContext::CopyDeviceTensorToCPU(const Tensor* source, absl::string_view edge_name,
                                       tensorflow::Device* device, Tensor* target,
                                       StatusCallback done) {
  AnnounceCopy(*announcer_, source, nullptr, std::move(done), [&](StatusCallback announced) {
    GPUDeviceContext::CopyDeviceTensorToCPU(source, edge_name, device, target,
                                            std::move(announced));
  });
}

void GpuContext::CopyTensorInSameDevice(const Tensor* source, tensorflow::Device* device,
                                        Tensor* target, StatusCallback done) const {
  AnnounceCopy(*announcer_, source, target, std::move(done), [&](StatusCallback announced) {
    GPUDeviceContext::CopyTensorInSameDevice(source, device, target, std::move(announced));
  });
}

}  // namespace thimble::tf
