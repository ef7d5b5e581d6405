#include "allocator/driver/fault_driver.h"

#include "absl/strings/str_cat.h"
#include "allocator/base/status_macros.h"

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

absl::Status FaultDriver::Meet(DriverCall call) {
  calls_.Add(call);
  MutexLock lock(&mutex_);
  if (!armed_ || !plan_.among.Contains(call)) return absl::OkStatus();
  const std::uint64_t number = met_++;
  if (number < plan_.first) return absl::OkStatus();
  const std::uint64_t since = number - plan_.first;
  const bool fails = since == 0 || (plan_.every != 0 && since % plan_.every == 0);
  if (!fails) return absl::OkStatus();
  ++failures_;
  return absl::Status(plan_.code,
                      absl::StrCat("injected fault: ", DriverCallName(call), ", call ", number));
}

absl::StatusOr<Address> FaultDriver::Reserve(Bytes bytes, Bytes alignment) {
  THIMBLE_RETURN_IF_ERROR(Meet(DriverCall::kReserve));
  return base().Reserve(bytes, alignment);
}

absl::Status FaultDriver::Release(Address address, Bytes bytes) {
  THIMBLE_RETURN_IF_ERROR(Meet(DriverCall::kRelease));
  return base().Release(address, bytes);
}

absl::StatusOr<ChunkHandle> FaultDriver::Create(Bytes bytes) {
  THIMBLE_RETURN_IF_ERROR(Meet(DriverCall::kCreate));
  return base().Create(bytes);
}

absl::Status FaultDriver::Destroy(ChunkHandle chunk) {
  THIMBLE_RETURN_IF_ERROR(Meet(DriverCall::kDestroy));
  return base().Destroy(chunk);
}

absl::Status FaultDriver::Map(Address address, Bytes bytes, ChunkHandle chunk) {
  THIMBLE_RETURN_IF_ERROR(Meet(DriverCall::kMap));
  return base().Map(address, bytes, chunk);
}

absl::Status FaultDriver::Unmap(Address address, Bytes bytes) {
  THIMBLE_RETURN_IF_ERROR(Meet(DriverCall::kUnmap));
  return base().Unmap(address, bytes);
}

absl::Status FaultDriver::SetAccess(Address address, Bytes bytes) {
  THIMBLE_RETURN_IF_ERROR(Meet(DriverCall::kSetAccess));
  return base().SetAccess(address, bytes);
}

absl::Status FaultDriver::Copy(Address device, void* host, Bytes bytes, CopyDirection direction) {
  THIMBLE_RETURN_IF_ERROR(Meet(DriverCall::kCopy));
  return base().Copy(device, host, bytes, direction);
}

absl::Status FaultDriver::PinHost(void* host, Bytes bytes) {
  THIMBLE_RETURN_IF_ERROR(Meet(DriverCall::kPinHost));
  return base().PinHost(host, bytes);
}

absl::Status FaultDriver::UnpinHost(void* host) {
  THIMBLE_RETURN_IF_ERROR(Meet(DriverCall::kUnpinHost));
  return base().UnpinHost(host);
}

absl::StatusOr<StreamSeq> FaultDriver::Record(StreamId stream) {
  THIMBLE_RETURN_IF_ERROR(Meet(DriverCall::kRecord));
  return base().Record(stream);
}

absl::StatusOr<bool> FaultDriver::Passed(StreamId stream, StreamSeq point) {
  THIMBLE_RETURN_IF_ERROR(Meet(DriverCall::kPassed));
  return base().Passed(stream, point);
}

absl::Status FaultDriver::Wait(StreamId stream, StreamSeq point) {
  THIMBLE_RETURN_IF_ERROR(Meet(DriverCall::kWait));
  return base().Wait(stream, point);
}

absl::StatusOr<MemoryInfo> FaultDriver::GetMemoryInfo() {
  THIMBLE_RETURN_IF_ERROR(Meet(DriverCall::kGetMemoryInfo));
  return base().GetMemoryInfo();
}

}  // namespace thimble
