#include "tf_plugin/settings.h"

#include <set>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace thimble::tf {
namespace {

constexpr int kLongestRetryMs = 600000;

absl::Status BadValue(absl::string_view key, absl::string_view value, absl::string_view expected) {
  return absl::InvalidArgumentError(
      absl::StrCat("option '", key, "': '", value, "' is not ", expected));
}

absl::Status Read(absl::string_view key, absl::string_view value, Settings* settings) {
  if (key == "device") {
    if (value != "cpu") {
      return BadValue(key, value, "'cpu'. TensorFlow chooses the GPUs: leave it out");
    }
    settings->cpu = true;
  } else if (key == "front") {
    if (value != "thimble" && value != "bfc") return BadValue(key, value, "'thimble' or 'bfc'");
    settings->front = value == "bfc" ? Settings::Front::kBfc : Settings::Front::kThimble;
  } else if (key == "peers") {
    return absl::InvalidArgumentError(
        "option 'peers': TensorFlow says which GPUs share memory: leave it out");
  } else if (key == "retry_ms") {
    if (!absl::SimpleAtoi(value, &settings->retry_ms) || settings->retry_ms < 0 ||
        settings->retry_ms > kLongestRetryMs) {
      return BadValue(key, value, "a number of milliseconds from 0 to 600000");
    }
  } else if (key == "limit") {
    settings->limit = std::string(value);
  } else if (key == "preallocate") {
    if (value != "on" && value != "off") return BadValue(key, value, "'on' or 'off'");
    settings->preallocate = std::string(value);
  } else {
    if (key == "swap") settings->swap = value != "off";
    // Alone, either of them means that; with swap:off the core refuses them.
    if (key == "swap_limit" || key == "swap_slowdown") settings->swap = true;
    settings->others.emplace_back(key, value);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Settings> ParseSettings(absl::string_view conf) {
  Settings settings;
  std::set<std::string> seen;
  for (const absl::string_view entry : absl::StrSplit(conf, ',', absl::SkipWhitespace())) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(entry, absl::MaxSplits(':', 1));
    const absl::string_view key = absl::StripAsciiWhitespace(parts.first);
    const absl::string_view value = absl::StripAsciiWhitespace(parts.second);
    if (!seen.insert(std::string(key)).second) {
      return absl::InvalidArgumentError(absl::StrCat("option '", key, "' is given twice"));
    }
    if (absl::Status status = Read(key, value, &settings); !status.ok()) return status;
  }
  if (settings.swap && settings.front == Settings::Front::kBfc) {
    return absl::InvalidArgumentError(
        "option 'swap': BFC hands out parts of blocks, which cannot leave: leave front:bfc out");
  }
  return settings;
}

std::string CoreOptions(const Settings& settings, const DeviceSettings& device) {
  std::vector<std::string> entries;
  const auto add = [&entries](absl::string_view key, absl::string_view value) {
    entries.push_back(absl::StrCat(key, ":", value));
  };
  add("device", settings.cpu ? "cpu" : absl::StrCat(device.ordinal));
  if (device.limit != 0) add("limit", absl::StrCat(device.limit));
  if (device.preallocate) add("preallocate", "on");
  if (!device.peers.empty()) add("peers", absl::StrJoin(device.peers, "+"));
  for (const auto& [key, value] : settings.others) {
    // One file per device: two writers would spoil it.
    const bool is_file = key == "log" || key == "plan_file";
    add(key, is_file && device.index > 0 ? absl::StrCat(value, ".", device.index) : value);
  }
  return absl::StrJoin(entries, ",");
}

}  // namespace thimble::tf
