// A TensorFlow device on which running out of memory harms nothing: it protects the variables of
// functions that XLA compiled and, on the CPU, kernels that cannot handle a refused request.
#pragma once

#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/device.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tf_plugin/device_allocator.h"
#include "tf_plugin/launch_guard.h"

namespace thimble::tf {

template <typename Device>
class GuardedDevice : public Device {
 public:
  template <typename... Arguments>
  explicit GuardedDevice(DeviceAllocator* allocator, Arguments&&... arguments)
      : Device(std::forward<Arguments>(arguments)...), allocator_(allocator) {}

  void Compute(tensorflow::OpKernel* kernel, tensorflow::OpKernelContext* context) override {
    if (IsOneDnn(*kernel)) return ComputeWithOverdraft(kernel, context);
    // Python calls functions this way, too.
    if (!LaunchGuard::IsLaunch(kernel)) return Device::Compute(kernel, context);
    LaunchGuard guard(allocator_, *kernel, context);
    Device::Compute(kernel, context);
  }

  void ComputeAsync(tensorflow::AsyncOpKernel* kernel, tensorflow::OpKernelContext* context,
                    tensorflow::AsyncOpKernel::DoneCallback done) override {
    if (!LaunchGuard::IsLaunch(kernel)) {
      return Device::ComputeAsync(kernel, context, std::move(done));
    }
    auto guard = std::make_shared<LaunchGuard>(allocator_, *kernel, context);
    Device::ComputeAsync(kernel, context, [guard, done = std::move(done)] {
      guard->End();  // the context is gone after done()
      done();
    });
  }

  // If there is no memory for a constant, TensorFlow calls the constant invalid.
  absl::Status MakeTensorFromProto(const tensorflow::TensorProto& proto,
                                   tensorflow::AllocatorAttributes attributes,
                                   tensorflow::Tensor* tensor) override {
    const Overdraft overdraft;
    const absl::Status status = Device::MakeTensorFromProto(proto, attributes, tensor);
    return overdraft.status().ok() ? status : overdraft.status();
  }

 private:
  // oneDNN's kernels, into which TensorFlow rewrites others, check their requests in helper
  // functions that cannot end the kernel.
  static bool IsOneDnn(const tensorflow::OpKernel& kernel) {
    const absl::string_view type = kernel.type_string_view();
    return type[0] == '_' &&
           (absl::StartsWith(type, "_Mkl") || absl::StartsWith(type, "_Quantized"));
  }

  void ComputeWithOverdraft(tensorflow::OpKernel* kernel, tensorflow::OpKernelContext* context) {
    const Overdraft overdraft;
    Device::Compute(kernel, context);
    const absl::Status& status = overdraft.status();
    if (status.ok() || !context->status().ok()) return;
    context->CtxFailure(absl::Status(
        status.code(),
        absl::StrCat(status.message(), " on ", this->name(), " for ", kernel->name_view())));
  }

  DeviceAllocator* const allocator_;
};

}  // namespace thimble::tf
