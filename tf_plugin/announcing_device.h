// A TensorFlow device that announces what its ops use. Only devices whose arena swaps have this
// class; without swapping, TensorFlow calls its own code.
#pragma once

#include <memory>
#include <utility>

#include "tensorflow/core/framework/device.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tf_plugin/announced_copy.h"
#include "tf_plugin/announcer.h"
#include "tf_plugin/op_rules.h"

namespace thimble::tf {

template <typename Device>
class AnnouncingDevice : public Device {
 public:
  template <typename... Arguments>
  explicit AnnouncingDevice(Announcer announcer, Arguments&&... arguments)
      : Device(std::forward<Arguments>(arguments)...), announcer_(announcer) {}

  void Compute(tensorflow::OpKernel* kernel, tensorflow::OpKernelContext* context) override {
    const OpRule rule = RuleOf(kernel->type_string_view());
    if (!AnnouncedUse::Needs(rule, *context) || announcer_.IsInChild()) {
      return Device::Compute(kernel, context);
    }
    AnnouncedUse use(&announcer_, rule, kernel, context);
    if (use.Begin()) Device::Compute(kernel, context);
  }

  void ComputeAsync(tensorflow::AsyncOpKernel* kernel, tensorflow::OpKernelContext* context,
                    tensorflow::AsyncOpKernel::DoneCallback done) override {
    const OpRule rule = RuleOf(kernel->type_string_view());
    if (!AnnouncedUse::Needs(rule, *context) || announcer_.IsInChild()) {
      return Device::ComputeAsync(kernel, context, std::move(done));
    }
    auto use = std::make_shared<AnnouncedUse>(&announcer_, rule, kernel, context);
    if (!use->Begin()) return done();
    Device::ComputeAsync(kernel, context, [use, done = std::move(done)] {
      use->End();  // the context is gone after done()
      done();
    });
  }

  void CopyTensorInSameDevice(const tensorflow::Tensor* input, tensorflow::Tensor* output,
                              const tensorflow::DeviceContext* context,
                              tensorflow::StatusCallback done) override {
    AnnounceCopy(announcer_, input, output, std::move(done),
                 [&](tensorflow::StatusCallback announced) {
                   Device::CopyTensorInSameDevice(input, output, context, std::move(announced));
                 });
  }

 protected:
  Announcer& announcer() { return announcer_; }

 private:
  Announcer announcer_;
};

}  // namespace thimble::tf
