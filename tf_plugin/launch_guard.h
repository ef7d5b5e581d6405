// Guards a function that XLA compiled: if it fails, its variables survive (lent_blocks.h), and the
// error says why it failed.
#pragma once

#include "absl/container/inlined_vector.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tf_plugin/accesses.h"
#include "tf_plugin/device_allocator.h"

namespace thimble::tf {

class LaunchGuard {
 public:
  // Whether an op runs code that XLA compiled: an op of XLA's own, or a call of a function that XLA
  // must compile.
  static bool IsLaunch(tensorflow::OpKernel* kernel);

  // To be created before the op runs; `allocator` is its device's.
  LaunchGuard(DeviceAllocator* allocator, const tensorflow::OpKernel& kernel,
              tensorflow::OpKernelContext* context);
  ~LaunchGuard() { End(); }
  LaunchGuard(const LaunchGuard&) = delete;
  LaunchGuard& operator=(const LaunchGuard&) = delete;

  // To be called after the op, which has its variables unlocked by then, or locked on this thread.
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
