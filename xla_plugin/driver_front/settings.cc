#include "xla_plugin/driver_front/settings.h"

#include <cstdint>
#include <map>
#include <new>

#include "allocator/thimble.h"

namespace thimble::xla {
namespace {

constexpr char kOwnOptions[] =
#define THIMBLE_JAX_OPTION(key, initial, values, meaning) #key ":" values ","
#include "xla_plugin/driver_front/options.def"
    ;

using Entries = std::map<std::string, std::string>;

}  // namespace

std::string Settings::Read(const std::string& conf, const JaxOptions& jax) {
  Entries entries;
  const auto tell = [](void* context, const char* key, const char* value) {
    static_cast<Entries*>(context)->emplace(key, value);
  };
  const thimble_status status = thimble_read_options(conf.c_str(), kOwnOptions, tell, &entries);
  for (const char* const key : {"device", "driver", "peers"}) {
    if (entries.count(key) == 0) continue;
    return "option '" + std::string(key) + "' is JAX's to choose: leave it out " +
           "(set CUDA_VISIBLE_DEVICES to choose GPUs)";
  }
  if (entries["swap"] == "auto") {
    return "option 'swap': JAX does not announce which of its buffers are in use, so none of them "
           "can be moved: leave it out";
  }
  if (status != THIMBLE_OK) return thimble_last_error();
  conf_ = conf;
#define THIMBLE_JAX_OPTION(key, initial, values, meaning) \
  if (entries.count(#key) > 0) own_.key = entries[#key];
#include "xla_plugin/driver_front/options.def"
  if (entries.count("limit") > 0) {
    std::uint64_t bytes = 0;
    thimble_parse_size(entries["limit"].c_str(), &bytes);
    limit_ = bytes;
  }
  if (jax.memory_fraction != 0 && !(jax.memory_fraction > 0 && jax.memory_fraction <= 1)) {
    return "XLA_CLIENT_MEM_FRACTION is " + std::to_string(jax.memory_fraction) +
           ": give a part of the device's memory, a number from 0 to 1";
  }
  if (jax.memory_fraction != 0 && limit_ != 0) {
    return "XLA_CLIENT_MEM_FRACTION and option 'limit' both set the limit: unset one";
  }
  preallocate_ = jax.preallocate && entries.count("preallocate") == 0;
  const bool takes_all_at_once = preallocate_ || entries["preallocate"] == "on";
  fraction_ = jax.memory_fraction;
  if (fraction_ == 0 && takes_all_at_once && limit_ == 0) fraction_ = kDefaultFraction;
  return "";
}

std::size_t Settings::LimitFor(std::size_t device_bytes) const {
  if (limit_ != 0) return limit_;
  if (fraction_ == 0) return device_bytes;
  return static_cast<std::size_t>(static_cast<double>(device_bytes) * fraction_);
}

std::string Settings::OptionsFor(int ordinal, std::size_t device_bytes, const std::string& driver,
                                 const std::vector<int>& peers) const {
  std::string decided = "device:" + std::to_string(ordinal) + ",driver:" + driver;
  for (std::size_t i = 0; i < peers.size(); ++i) {
    decided += (i == 0 ? ",peers:" : "+") + std::to_string(peers[i]);
  }
  if (fraction_ != 0) decided += ",limit:" + std::to_string(LimitFor(device_bytes));
  if (preallocate_) decided += ",preallocate:on";
  decided += ",swap:";  // nobody announces uses here, so there is nothing to watch
  const auto write = [&](char* buffer, std::size_t* bytes) {
    const thimble_status status = thimble_device_options(
        conf_.c_str(), kOwnOptions, decided.c_str(), static_cast<unsigned>(ordinal), buffer, bytes);
    if (status != THIMBLE_OK) throw std::bad_alloc();  // the core accepted the text before
  };
  std::size_t bytes = 0;
  write(nullptr, &bytes);
  std::string options(bytes, '\0');
  write(options.data(), &bytes);
  options.pop_back();  // the final zero
  return options;
}

std::string Settings::CheckFor(std::size_t device_bytes) const {
  const std::string options = OptionsFor(0, device_bytes, "libcuda.so.1", {});
  if (thimble_check_options(options.c_str(), device_bytes) == THIMBLE_OK) return "";
  return thimble_last_error();
}

}  // namespace thimble::xla
