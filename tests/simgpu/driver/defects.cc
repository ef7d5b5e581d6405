#include "tests/simgpu/driver/defects.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace simgpu {
namespace {

// In the order of Defect.
constexpr std::array<const char*, static_cast<std::size_t>(Defect::kCount)> kNames = {
    "alias", "onto", "part", "open", "first", "early", "loose", "device"};

}  // namespace

bool Defects::Add(const std::string& name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return false;
  all_.set(static_cast<std::size_t>(std::distance(kNames.begin(), found)));
  return true;
}

}  // namespace simgpu
