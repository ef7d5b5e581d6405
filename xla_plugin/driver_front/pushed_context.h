// Makes a context current on this thread while it lives.
#pragma once

#include "xla_plugin/driver_front/cuda_abi.h"
#include "xla_plugin/driver_front/real_driver.h"

namespace thimble::xla {

class PushedContext {
 public:
  explicit PushedContext(CUcontext context)
      : result_(Real().cuCtxPushCurrent_v2(context)), pushed_(result_ == kSuccess) {}

  // Pushes `context` only if there is one and the thread has none: callers may free from any
  // thread.
  static PushedContext IfNone(CUcontext context) {
    CUcontext current = nullptr;
    const CUresult result = Real().cuCtxGetCurrent(&current);
    const bool has_one = result == kSuccess && current != nullptr;
    return has_one || context == nullptr ? PushedContext() : PushedContext(context);
  }

  ~PushedContext() {
    CUcontext popped = nullptr;
    if (pushed_) Real().cuCtxPopCurrent_v2(&popped);
  }
  PushedContext(const PushedContext&) = delete;
  PushedContext& operator=(const PushedContext&) = delete;

  CUresult result() const { return result_; }

 private:
  PushedContext() = default;

  const CUresult result_ = kSuccess;
  const bool pushed_ = false;
};

}  // namespace thimble::xla
