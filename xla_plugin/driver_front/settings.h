// What the user asked for, from THIMBLE_CONF and from JAX's own variables, as options of an arena.
// The core parses THIMBLE_CONF, and is told the front's own keys.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace thimble::xla {

// What JAX reads from its variables.
struct JaxOptions {
  double memory_fraction = 0;  // of the device's memory; 0: not set
  bool preallocate = false;
};

class Settings {
 public:
  // The part of the device that JAX takes when it preallocates and no fraction is set.
  static constexpr double kDefaultFraction = 0.75;

  Settings() = default;

  // "" or what is wrong, by name and with the remedy. Whether a device has as much is not looked
  // at: CheckFor() does.
  std::string Read(const std::string& conf, const JaxOptions& jax);

  // "" or what is wrong with the options on a device of this size.
  std::string CheckFor(std::size_t device_bytes) const;

  // The arena's options for one device.
  std::string OptionsFor(int ordinal, std::size_t device_bytes, const std::string& driver,
                         const std::vector<int>& peers) const;

  // The most the arena may take; all of the device unless somebody set a limit or a fraction.
  std::size_t LimitFor(std::size_t device_bytes) const;

  // Whether the driver serves cuMemAlloc, so that its memory can go to other processes.
  bool cumemalloc_from_driver() const { return own_.cumemalloc == "driver"; }

 private:
  struct Own {
#define THIMBLE_JAX_OPTION(key, initial, values, meaning) std::string key = initial;
#include "xla_plugin/driver_front/options.def"
  };

  std::string conf_;  // accepted by the core
  Own own_;
  std::size_t limit_ = 0;     // that it names; 0: none
  double fraction_ = 0;       // 0: no limit by fraction
  bool preallocate_ = false;  // without that it says so
};

}  // namespace thimble::xla
