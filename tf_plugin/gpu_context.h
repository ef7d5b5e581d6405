// TensorFlow's context of a GPU. Copies between the GPU and the host go through it; it announces
// them.
#pragma once

#include "tensorflow/core/common_runtime/gpu_device_context.h"
#include "tf_plugin/announcer.h"

namespace thimble::tf {

class GpuContext final : public tensorflow::GPUDeviceContext {
 public:
  // Uses the streams of `stock`; `announcer` outlives it.
  GpuContext(const tensorflow::GPUDeviceContext& stock, const Announcer* announcer);

  void CopyCPUTensorToDevice(const tensorflow::Tensor* source, tensorflow::Device* device,
                             tensorflow::Tensor* target, tensorflow::StatusCallback done,
                             bool sync_dst_compute) const override;
  void CopyDeviceTensorToCPU(const tensorflow::Tensor* source, absl::string_view edge_name,
                             tensorflow::Device* device, tensorflow::Tensor* target,
                             tensorflow::StatusCallback done) override;
  void CopyTensorInSameDevice(const tensorflow::Tensor* source, tensorflow::Device* device,
                              tensorflow::Tensor* target,
                              tensorflow::StatusCallback done) const override;

 private:
  const Announcer* const announcer_;
};

}  // namespace thimble::tf
