// A policy together with the device it is measured on, by name.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "allocator/base/bytes.h"
#include "tests/bench/device.h"
#include "tests/bench/policy.h"

namespace thimble::bench {

enum class PolicyKind : std::uint8_t {
  kThimble,
  kThimblePlan,
  kBfc,
  kBfcGrowth,
  kGmlake,
  kExpandable,
  kCnmem
};

// In the order of reports.
const std::vector<PolicyKind>& AllPolicies();
absl::string_view PolicyName(PolicyKind kind);
std::optional<PolicyKind> ParsePolicy(absl::string_view name);

// How a policy gets its memory.
enum class Sizing : std::uint8_t {
  kNatural,  // as its users run it: bfc and cnmem take the whole capacity at once, the others grow
  kGrowth,   // from empty, as far as the policy can; bfc alone cannot
};

class Subject {
 public:
  Subject(PolicyKind kind, Bytes capacity, Sizing sizing);

  Policy& policy() { return *policy_; }
  const Device& device() const { return device_; }

 private:
  Device device_;
  const std::unique_ptr<Policy> policy_;  // after the device: it must go first
};

}  // namespace thimble::bench
