// Thimble without a GPU (THIMBLE_CONF=device:cpu): TensorFlow's CPU device, whose ops get their
// memory from an arena over host memory, with a limit that stands for a device's size. Logical
// devices have an arena each.
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
  // Above the two of TensorFlow, 60 and 70, which are gone when this one is registered.
  static constexpr int kPriority = 80;

  // Settings that could not be read are what CreateDevices() returns.
  explicit CpuDeviceFactory(absl::StatusOr<Settings> settings);

  absl::Status ListPhysicalDevices(std::vector<std::string>* devices) override;
  absl::Status CreateDevices(const tensorflow::SessionOptions& options,
                             const std::string& name_prefix,
                             std::vector<std::unique_ptr<tensorflow::Device>>* devices) override;

 private:
  const absl::StatusOr<Settings> settings_;
};

}  // namespace thimble::tf
