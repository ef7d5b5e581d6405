// Runs a function that XLA compiled so that its variables outlive its failure (lent_blocks.h), and
// says why it failed.
#pragma once

#include "absl/container/inlined_vector.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tf_plugin/accesses.h"
#include "tf_plugin/device_allocator.h"

namespace thimble::tf {

class LaunchGuard {
 public:
  // Whether an op runs what XLA has compiled: one of XLA's own, or any that calls a function if XLA
  // must compile that.
  static bool IsLaunch(tensorflow::OpKernel* kernel);

  // Before the op runs; `allocator` is that of its device.
  LaunchGuard(DeviceAllocator* allocator, const tensorflow::OpKernel& kernel,
              tensorflow::OpKernelContext* context);
  ~LaunchGuard() { End(); }
  LaunchGuard(const LaunchGuard&) = delete;
  LaunchGuard& operator=(const LaunchGuard&) = delete;

  // After it. By then it has its variables locked on this thread, or unlocked.
  void End();

 private:
  bool IsVariables(const void* block) const;
  void Explain();

  DeviceAllocator* const allocator_;
  tensorflow::OpKernelContext* context_;  // null after End()
  absl::InlinedVector<VariablePtr, 8> variables_;
  Blocks lent_;
};

}  // namespace thimble::tf
