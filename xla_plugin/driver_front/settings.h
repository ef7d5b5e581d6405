// The user's settings, from THIMBLE_CONF and from JAX's own variables, as options of an arena. The
// core parses THIMBLE_CONF, given the front's own keys.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace thimble::xla {

// JAX's own settings, from its variables.
struct JaxOptions {
  double memory_fraction = 0;  // part of the device's memory; 0: not set
  bool preallocate = false;
};

class Settings {
 public:
  // The part of the device that JAX preallocates if no fraction is set.
  static constexpr double kDefaultFraction = 0.75;

  Settings() = default;

  // Returns "" or what is wrong, with the name and the remedy. CheckFor() compares the values with
  // a device's memory.
  std::string Read(const std::string& conf, const JaxOptions& jax);

  // Returns "" or what is wrong with the options on a device of this size.
  std::string CheckFor(std::size_t device_bytes) const;

  // The arena's options for one device.
  std::string OptionsFor(int ordinal, std::size_t device_bytes, const std::string& driver,
                         const std::vector<int>& peers) const;

  // The most that the arena may take: all of the device, unless a limit or a fraction is set.
  std::size_t LimitFor(std::size_t device_bytes) const;

  // Whether the driver serves cuMemAlloc, so that its memory can go to other processes.
  bool cumemalloc_from_driver() const { return own_.cumemalloc == "driver"; }

 private:
  struct Own {
#define THIMBLE_JAX_OPTION(key, initial, values, meaning) std::string key = initial;
#include "xla_plugin/driver_front/options.def"
  };

  std::string conf_;  // the core has accepted it
  Own own_;
  std::size_t limit_ = 0;     // from THIMBLE_CONF; 0: none
  double fraction_ = 0;       // 0: no limit by fraction
  bool preallocate_ = false;  // JAX's setting, if THIMBLE_CONF has none
};

}  // namespace thimble::xla
