// Thimble without a GPU (THIMBLE_CONF=device:cpu): a TensorFlow CPU device whose ops get their
// memory from an arena over host memory, with a limit in place of a device's size. Each logical
// device has an arena.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensorflow/core/framework/device_factory.h"
#include "tf_plugin/settings.h"

namespace thimble::tf {

class CpuDeviceFactory final : public tensorflow::DeviceFactory {
 public:
  // Above TensorFlow's two factories (60 and 70), so that this one replaces them.
  static constexpr int kPriority = 80;

  // If the settings could not be read, CreateDevices() returns that error.
  explicit CpuDeviceFactory(absl::StatusOr<Settings> settings);

  absl::Status ListPhysicalDevices(std::vector<std::string>* devices) override;
  absl::Status CreateDevices(const tensorflow::SessionOptions& options,
                             const std::string& name_prefix,
                             std::vector<std::unique_ptr<tensorflow::Device>>* devices) override;

 private:
  const absl::StatusOr<Settings> settings_;
};

}  // namespace thimble::tf
