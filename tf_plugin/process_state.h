// Serves TensorFlow's GPUs. TensorFlow asks its process state for the allocator of each GPU, and
// uses a subclass that exists before the first GPU is created.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensorflow/core/common_runtime/gpu/gpu_process_state.h"
#include "tf_plugin/settings.h"

namespace thimble::tf {

class ProcessState final : public tensorflow::GPUProcessState {
 public:
  // If the settings could not be read, the first GPU is refused with that error.
  explicit ProcessState(absl::StatusOr<Settings> settings);

  using GPUProcessState::GetGPUAllocator;
  // The allocator of logical device `id`. The first call fixes TensorFlow's settings for it (limit,
  // growth, peers). Null if THIMBLE_CONF is wrong, which TensorFlow turns into an error before any
  // training. Where Thimble cannot serve, this is TensorFlow's own allocator.
  tsl::Allocator* GetGPUAllocator(const tensorflow::GPUOptions& options, tsl::TfDeviceId id,
                                  std::size_t total_bytes,
                                  const std::vector<tsl::TfDeviceId>& peers) override;

 private:
  // Puts an allocator into gpu_allocators_, where the base class looks for it. On an error,
  // kInvalidArgument refuses the device; any other code leaves it to TensorFlow.
  absl::Status Serve(const tensorflow::GPUOptions& options, tsl::TfDeviceId id,
                     std::size_t total_bytes, const std::vector<tsl::TfDeviceId>& peers)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const absl::StatusOr<Settings> settings_;
};

}  // namespace thimble::tf
