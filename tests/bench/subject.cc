#include "tests/bench/subject.h"

#include "allocator/base/check.h"
#include "tests/bench/driver_regions.h"
#include "tests/bench/peers.h"

namespace thimble::bench {
namespace {

std::unique_ptr<Policy> MakePolicy(PolicyKind kind, Bytes capacity, Sizing sizing, Device* device) {
  Driver& driver = device->driver();
  switch (kind) {
    case PolicyKind::kThimble:
      return MakeThimble(driver, /*plan=*/false);
    case PolicyKind::kThimblePlan:
      return MakeThimble(driver, /*plan=*/true);
    case PolicyKind::kBfc:
    case PolicyKind::kBfcGrowth:
      return MakeBfc(std::make_unique<DriverRegions>(driver), capacity,
                     kind == PolicyKind::kBfcGrowth);
    case PolicyKind::kGmlake:
      return MakeGmlake(driver);
    case PolicyKind::kExpandable:
      return MakeExpandable(driver);
    case PolicyKind::kCnmem:
      return MakeCnmem(driver, sizing == Sizing::kGrowth);
  }
  THIMBLE_CHECK(false, "every kind of policy is made above");
}

}  // namespace

const std::vector<PolicyKind>& AllPolicies() {
  static const auto* const kAll = new std::vector<PolicyKind>{
      PolicyKind::kThimble, PolicyKind::kThimblePlan, PolicyKind::kBfc,  PolicyKind::kBfcGrowth,
      PolicyKind::kGmlake,  PolicyKind::kExpandable,  PolicyKind::kCnmem};
  return *kAll;
}

absl::string_view PolicyName(PolicyKind kind) {
  switch (kind) {
    case PolicyKind::kThimble:
      return "thimble";
    case PolicyKind::kThimblePlan:
      return "thimble_plan";
    case PolicyKind::kBfc:
      return "bfc";
    case PolicyKind::kBfcGrowth:
      return "bfc_growth";
    case PolicyKind::kGmlake:
      return "gmlake";
    case PolicyKind::kExpandable:
      return "expandable";
    case PolicyKind::kCnmem:
      return "cnmem";
  }
  THIMBLE_CHECK(false, "every kind of policy is named above");
}

std::optional<PolicyKind> ParsePolicy(absl::string_view name) {
  for (const PolicyKind kind : AllPolicies()) {
    if (PolicyName(kind) == name) return kind;
  }
  return std::nullopt;
}

Subject::Subject(PolicyKind kind, Bytes capacity, Sizing sizing)
    : device_(capacity), policy_(MakePolicy(kind, capacity, sizing, &device_)) {}

}  // namespace thimble::bench
