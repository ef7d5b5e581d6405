// Serves TensorFlow's GPUs: TensorFlow asks its process state for the allocator of each GPU, and
// takes a subclass of it if one is there before the first GPU is.
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
  // Settings that could not be read are told when the first GPU is made, and refuse it.
  explicit ProcessState(absl::StatusOr<Settings> settings);

  using GPUProcessState::GetGPUAllocator;
  // The allocator of logical device `id`; what TensorFlow says about it (limit, growth, peers)
  // counts on the first call. Null if THIMBLE_CONF is wrong, which TensorFlow turns into an error
  // before anything is trained. Where Thimble cannot serve, TensorFlow's own allocator does.
  tsl::Allocator* GetGPUAllocator(const tensorflow::GPUOptions& options, tsl::TfDeviceId id,
                                  std::size_t total_bytes,
                                  const std::vector<tsl::TfDeviceId>& peers) override;

 private:
  // Puts an allocator into gpu_allocators_, where the base looks for it, or says why not:
  // kInvalidArgument refuses the device, anything else leaves it to TensorFlow.
  absl::Status Serve(const tensorflow::GPUOptions& options, tsl::TfDeviceId id,
                     std::size_t total_bytes, const std::vector<tsl::TfDeviceId>& peers)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const absl::StatusOr<Settings> settings_;
};

}  // namespace thimble::tf
