// THIMBLE_CONF as the plugin reads it. The core parses it, given the plugin's own keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace thimble::tf {

struct Settings {
#define THIMBLE_TENSORFLOW_OPTION(key, initial, values, meaning) std::string key = initial;
#include "tf_plugin/options.def"
  std::string conf;                  // all of it, accepted by the core
  bool cpu = false;                  // serve the CPU device
  int retry_ms = 10000;              // as BFC: how long a request that does not fit waits for frees
  bool swap = false;                 // swap is auto or watch, so ops announce what they use
  std::optional<std::string> limit;  // as it was written
  std::optional<bool> preallocate;

  bool is_bfc() const { return front == "bfc"; }
};

// Refuses what the core refuses, and options that TensorFlow decides.
absl::StatusOr<Settings> ParseSettings(const std::string& conf);

// What TensorFlow says about one of its devices.
struct DeviceSettings {
  int index = 0;             // of TensorFlow's logical device
  int ordinal = 0;           // CUDA's number of the GPU behind it; not used for the CPU
  std::uint64_t limit = 0;   // most bytes; 0: all
  bool preallocate = false;  // unless THIMBLE_CONF says otherwise
  std::vector<int> peers;    // CUDA's numbers of GPUs that may use its memory too
};

// The core's options for one device. `limit` and `preallocate` come from `device`: the caller has
// already applied THIMBLE_CONF to them.
std::string CoreOptions(const Settings& settings, const DeviceSettings& device);

}  // namespace thimble::tf
