#include "xla_plugin/driver_front/driver_front.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <string>
#include <utility>

#include "xla_plugin/driver_front/front.h"

namespace thimble::xla {
namespace {

// Never destroyed, like the front.
const char* Kept(std::string error) {
  static std::string* const kept = new std::string;
  *kept = std::move(error);
  return kept->empty() ? nullptr : kept->c_str();
}

template <typename Body>
const char* Guard(Body body) noexcept {
  try {
    return Kept(body());
  } catch (const std::exception&) {
    return "the host is out of memory";
  }
}

}  // namespace
}  // namespace thimble::xla

using thimble::xla::Front;
using thimble::xla::Guard;

uint32_t thimble_front_abi_version(void) { return THIMBLE_FRONT_ABI_VERSION; }

const char* thimble_front_open(const char* path) {
  return Guard([&] { return path == nullptr ? "path is null" : Front::Get().Open(path); });
}

const char* thimble_front_start(const char* conf, double memory_fraction, int preallocate) {
  return Guard([&] {
    return Front::Get().Start(conf == nullptr ? "" : conf, {memory_fraction, preallocate != 0});
  });
}

double thimble_front_fraction(void) {
  const Front& front = Front::Get();
  return front.on() ? front.fraction() : 0;
}

thimble_arena* thimble_front_arena(int device) {
  const Front& front = Front::Get();
  const thimble::xla::Device* const found = front.on() ? front.DeviceOf(device) : nullptr;
  return found == nullptr ? nullptr : found->arena();
}

size_t thimble_front_take_failure(char* buffer, size_t bytes) {
  if (buffer == nullptr || bytes == 0) return 0;
  const std::string report = Front::Get().failure().Take();
  const size_t length = std::min(report.size(), bytes - 1);
  std::memcpy(buffer, report.data(), length);
  buffer[length] = 0;
  return length;
}
