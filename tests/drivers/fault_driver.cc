#include "tests/drivers/fault_driver.h"

#include "absl/strings/str_cat.h"

namespace thimble {

void FaultDriver::Arm(const FaultPlan& plan) {
  MutexLock lock(&mutex_);
  armed_ = true;
  plan_ = plan;
  met_ = 0;
}

void FaultDriver::Disarm() {
  MutexLock lock(&mutex_);
  armed_ = false;
}

std::uint64_t FaultDriver::failures() const {
  MutexLock lock(&mutex_);
  return failures_;
}

absl::Status FaultDriver::Before(const Call& call) {
  calls_.Add(call.call);
  MutexLock lock(&mutex_);
  if (!armed_ || !plan_.among.Contains(call.call)) return absl::OkStatus();
  const std::uint64_t number = met_++;
  if (number < plan_.first) return absl::OkStatus();
  const std::uint64_t since = number - plan_.first;
  const bool fails = since == 0 || (plan_.every != 0 && since % plan_.every == 0);
  if (!fails) return absl::OkStatus();
  ++failures_;
  return absl::Status(
      plan_.code, absl::StrCat("injected fault: ", DriverCallName(call.call), ", call ", number));
}

}  // namespace thimble
