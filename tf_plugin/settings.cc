#include "tf_plugin/settings.h"

#include <new>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "allocator/thimble.h"
#include "tf_plugin/arenas.h"

namespace thimble::tf {
namespace {

constexpr char kOwnOptions[] =
#define THIMBLE_TENSORFLOW_OPTION(key, initial, values, meaning) #key ":" values ","
#include "tf_plugin/options.def"
    ;

// Takes the options that the plugin acts on. The core checks values.
absl::Status Take(absl::string_view key, absl::string_view value, Settings* settings) {
#define THIMBLE_TENSORFLOW_OPTION(name, initial, values, meaning) \
  if (key == #name) settings->name = std::string(value);
#include "tf_plugin/options.def"
  if (key == "device") {
    if (value != "cpu") {
      return absl::InvalidArgumentError(
          absl::StrCat("option 'device': '", value,
                       "' is not 'cpu'. TensorFlow chooses the GPUs: leave it out"));
    }
    settings->cpu = true;
  } else if (key == "peers") {
    return absl::InvalidArgumentError(
        "option 'peers': TensorFlow decides which GPUs share memory: leave it out");
  } else if (key == "retry_ms") {
    if (!absl::SimpleAtoi(value, &settings->retry_ms)) settings->retry_ms = 0;
  } else if (key == "limit") {
    settings->limit = std::string(value);
  } else if (key == "preallocate") {
    settings->preallocate = value == "on";
  } else if (key == "swap") {
    settings->swap = value != "off";
  }
  return absl::OkStatus();
}

struct Reading {
  Settings settings;
  absl::Status refusal;
};

}  // namespace

absl::StatusOr<Settings> ParseSettings(const std::string& conf) {
  Reading reading;
  const auto take = [](void* context, const char* key, const char* value) {
    auto* const into = static_cast<Reading*>(context);
    into->refusal.Update(Take(key, value, &into->settings));
  };
  const thimble_status status = thimble_read_options(conf.c_str(), kOwnOptions, take, &reading);
  if (!reading.refusal.ok()) return reading.refusal;
  if (status != THIMBLE_OK) return ToStatus(status);
  if (reading.settings.swap && reading.settings.is_bfc()) {
    return absl::InvalidArgumentError(
        "option 'swap' does not work with front:bfc, because BFC hands out parts of blocks and "
        "parts cannot leave: leave front:bfc out");
  }
  reading.settings.conf = conf;
  return reading.settings;
}

std::string CoreOptions(const Settings& settings, const DeviceSettings& device) {
  const std::string decided = absl::StrCat(
      "device:", settings.cpu ? "cpu" : absl::StrCat(device.ordinal),
      ",limit:", device.limit == 0 ? "" : absl::StrCat(device.limit),
      ",preallocate:", device.preallocate ? "on" : "", ",peers:", absl::StrJoin(device.peers, "+"),
      ",retry_ms:");  // TfAllocator waits, not the arena
  const auto write = [&](char* buffer, std::size_t* bytes) {
    const thimble_status status =
        thimble_device_options(settings.conf.c_str(), kOwnOptions, decided.c_str(),
                               static_cast<unsigned>(device.index), buffer, bytes);
    if (status != THIMBLE_OK) throw std::bad_alloc();  // the core accepted the text before
  };
  std::size_t bytes = 0;
  write(nullptr, &bytes);
  std::string options(bytes, '\0');
  write(options.data(), &bytes);
  options.pop_back();  // the final zero
  return options;
}

}  // namespace thimble::tf
