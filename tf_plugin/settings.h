// THIMBLE_CONF as the plugin reads it: some keys are its own, the rest is the core's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace thimble::tf {

struct Settings {
  enum class Front {
    kThimble,  // blocks come from the arena
    kBfc,      // TensorFlow's BFC cuts up regions that come from the arena
  };
  bool cpu = false;  // serve the CPU device
  Front front = Front::kThimble;
  int retry_ms = 10000;  // as BFC: how long a request that does not fit waits for frees
  bool swap = false;     // bytes of idle tensors may leave the device: ops announce what they use
  std::optional<std::string> limit;  // as it was written
  std::optional<std::string> preallocate;
  std::vector<std::pair<std::string, std::string>> others;  // as they were written, for the core
};

// Refuses what the plugin can judge itself; thimble_create() judges the rest.
absl::StatusOr<Settings> ParseSettings(absl::string_view conf);

// What TensorFlow says about one of its devices.
struct DeviceSettings {
  int index = 0;             // of TensorFlow's logical device
  int ordinal = 0;           // CUDA's number of the GPU behind it; not used for the CPU
  std::uint64_t limit = 0;   // most bytes; 0: all
  bool preallocate = false;  // unless THIMBLE_CONF says otherwise
  std::vector<int> peers;    // CUDA's numbers of GPUs that may use its memory too
};

// The options of the core for one device. `limit` and `preallocate` are those of `device`: whoever
// calls has already let THIMBLE_CONF speak.
std::string CoreOptions(const Settings& settings, const DeviceSettings& device);

}  // namespace thimble::tf
