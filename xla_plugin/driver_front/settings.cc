#include "xla_plugin/driver_front/settings.h"

#include <algorithm>
#include <cstdint>

#include "allocator/thimble.h"

namespace thimble::xla {
namespace {

std::string Trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// The grammar of the core's options: "key:value,key:value". A key without a value is the core's
// to refuse.
std::vector<std::pair<std::string, std::string>> Split(const std::string& conf) {
  std::vector<std::pair<std::string, std::string>> entries;
  for (std::size_t begin = 0; begin <= conf.size();) {
    const std::size_t end = std::min(conf.find(',', begin), conf.size());
    const std::string entry = Trimmed(conf.substr(begin, end - begin));
    begin = end + 1;
    if (entry.empty()) continue;
    const std::size_t colon = std::min(entry.find(':'), entry.size());
    entries.emplace_back(Trimmed(entry.substr(0, colon)),
                         colon < entry.size() ? Trimmed(entry.substr(colon + 1)) : "");
  }
  return entries;
}

}  // namespace

const std::string* Settings::Find(const std::string& key) const {
  for (const auto& [name, value] : arena_) {
    if (name == key) return &value;
  }
  return nullptr;
}

std::string Settings::Read(const std::string& conf, const JaxOptions& jax) {
  bool seen_cumemalloc = false;
  for (auto& [key, value] : Split(conf)) {
    if (key == "device" || key == "driver" || key == "peers") {
      return "option '" + key + "' is JAX's to choose: leave it out (CUDA_VISIBLE_DEVICES says " +
             "which GPUs there are)";
    }
    if (key == "swap" && value == "watch") continue;  // nothing is announced here
    if ((key == "swap" && value != "off") || key == "swap_limit" || key == "swap_slowdown") {
      return "option 'swap': JAX does not tell which of its buffers are in use, so none of them "
             "can be "
             "moved: leave it out";
    }
    if (key != "cumemalloc") {
      arena_.emplace_back(key, value);
      continue;
    }
    if (seen_cumemalloc) return "option 'cumemalloc' is given twice";
    if (value != "arena" && value != "driver") {
      return "option 'cumemalloc': '" + value + "' is not 'arena' or 'driver'";
    }
    seen_cumemalloc = true;
    cumemalloc_from_driver_ = value == "driver";
  }
  if (jax.memory_fraction != 0 && !(jax.memory_fraction > 0 && jax.memory_fraction <= 1)) {
    return "XLA_CLIENT_MEM_FRACTION is " + std::to_string(jax.memory_fraction) +
           ": a device has no more than all of its memory, give a number from 0 to 1";
  }
  if (jax.memory_fraction != 0 && Find("limit") != nullptr) {
    return "XLA_CLIENT_MEM_FRACTION and option 'limit' both say how much to take: unset one";
  }
  const std::string* const preallocate = Find("preallocate");
  preallocate_ = jax.preallocate && preallocate == nullptr;
  const bool takes_all_at_once = preallocate_ || (preallocate != nullptr && *preallocate == "on");
  fraction_ = jax.memory_fraction;
  if (fraction_ == 0 && takes_all_at_once && Find("limit") == nullptr) fraction_ = kDefaultFraction;
  return "";
}

std::size_t Settings::LimitFor(std::size_t device_bytes) const {
  if (const std::string* const limit = Find("limit")) {
    std::uint64_t bytes = 0;  // the core has accepted it
    thimble_parse_size(limit->c_str(), &bytes);
    return bytes;
  }
  if (fraction_ == 0) return device_bytes;
  return static_cast<std::size_t>(static_cast<double>(device_bytes) * fraction_);
}

std::string Settings::OptionsFor(int ordinal, std::size_t device_bytes, const std::string& driver,
                                 const std::vector<int>& peers) const {
  std::string options = "device:" + std::to_string(ordinal) + ",driver:" + driver;
  for (std::size_t i = 0; i < peers.size(); ++i) {
    options += (i == 0 ? ",peers:" : "+") + std::to_string(peers[i]);
  }
  for (const auto& [key, value] : arena_) {
    options.append(",").append(key).append(":").append(value);
    // Two arenas cannot write one file.
    if ((key == "log" || key == "plan_file") && ordinal > 0)
      options += "." + std::to_string(ordinal);
  }
  if (fraction_ != 0) options += ",limit:" + std::to_string(LimitFor(device_bytes));
  if (preallocate_) options += ",preallocate:on";
  return options;
}

std::string Settings::CheckFor(std::size_t device_bytes) const {
  const std::string options = OptionsFor(0, device_bytes, "libcuda.so.1", {});
  if (thimble_check_options(options.c_str(), device_bytes) == THIMBLE_OK) return "";
  return thimble_last_error();
}

}  // namespace thimble::xla
