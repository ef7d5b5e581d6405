// Base of the drivers that wrap another one for tests: every call goes through Before() and
// After().
//
// A subclass with a lock never holds it while the base runs: both locks have rank kDriver.
#pragma once

#include <utility>

#include "allocator/base/status_macros.h"
#include "allocator/driver/driver.h"
#include "tests/drivers/driver_call.h"

namespace thimble {

class InterceptingDriver : public Driver {
 public:
  const DriverProperties& properties() const override { return base_.properties(); }

  absl::StatusOr<Address> Reserve(Bytes bytes, Bytes alignment) override {
    return Intercept(At(DriverCall::kReserve, {}, bytes),
                     [&] { return base_.Reserve(bytes, alignment); });
  }
  absl::Status Release(Address address, Bytes bytes) override {
    return Intercept(At(DriverCall::kRelease, address, bytes),
                     [&] { return base_.Release(address, bytes); });
  }
  absl::StatusOr<ChunkHandle> Create(Bytes bytes) override {
    return Intercept(At(DriverCall::kCreate, {}, bytes), [&] { return base_.Create(bytes); });
  }
  absl::Status Destroy(ChunkHandle chunk) override {
    return Intercept(At(DriverCall::kDestroy), [&] { return base_.Destroy(chunk); });
  }
  absl::Status Map(Address address, Bytes bytes, ChunkHandle chunk) override {
    return Intercept(At(DriverCall::kMap, address, bytes),
                     [&] { return base_.Map(address, bytes, chunk); });
  }
  absl::Status Unmap(Address address, Bytes bytes) override {
    return Intercept(At(DriverCall::kUnmap, address, bytes),
                     [&] { return base_.Unmap(address, bytes); });
  }
  absl::Status SetAccess(Address address, Bytes bytes) override {
    return Intercept(At(DriverCall::kSetAccess, address, bytes),
                     [&] { return base_.SetAccess(address, bytes); });
  }
  absl::Status Copy(Address device, void* host, Bytes bytes, CopyDirection direction) override {
    Call call = At(DriverCall::kCopy, device, bytes);
    call.direction = direction;
    return Intercept(call, [&] { return base_.Copy(device, host, bytes, direction); });
  }
  absl::Status PinHost(void* host, Bytes bytes) override {
    return Intercept(At(DriverCall::kPinHost, {}, bytes),
                     [&] { return base_.PinHost(host, bytes); });
  }
  absl::Status UnpinHost(void* host) override {
    return Intercept(At(DriverCall::kUnpinHost), [&] { return base_.UnpinHost(host); });
  }
  absl::StatusOr<StreamSeq> Record(StreamId stream) override {
    return Intercept(At(DriverCall::kRecord), [&] { return base_.Record(stream); });
  }
  absl::StatusOr<bool> Passed(StreamId stream, StreamSeq point) override {
    return Intercept(At(DriverCall::kPassed), [&] { return base_.Passed(stream, point); });
  }
  absl::Status Wait(StreamId stream, StreamSeq point) override {
    return Intercept(At(DriverCall::kWait), [&] { return base_.Wait(stream, point); });
  }
  absl::StatusOr<MemoryInfo> GetMemoryInfo() override {
    return Intercept(At(DriverCall::kGetMemoryInfo), [&] { return base_.GetMemoryInfo(); });
  }
  void LeaveToChild(Address device, const void* host, Bytes bytes) override {
    base_.LeaveToChild(device, host, bytes);
  }

 protected:
  // A call on its way: 0 for what it does not have.
  struct Call {
    DriverCall call = DriverCall::kReserve;
    Address address;
    Bytes bytes = 0;
    CopyDirection direction = CopyDirection::kToDevice;
  };

  // `base` must outlive this driver.
  explicit InterceptingDriver(Driver& base) : base_(base) {}

  // Not OK: the call never reaches the base, and fails so.
  virtual absl::Status Before(const Call& /*call*/) { return absl::OkStatus(); }
  // The call has reached the base, which said `status`.
  virtual void After(const Call& /*call*/, const absl::Status& /*status*/) {}

 private:
  static Call At(DriverCall call, Address address = {}, Bytes bytes = 0) {
    return {call, address, bytes};
  }
  static const absl::Status& StatusOf(const absl::Status& status) { return status; }
  template <typename T>
  static const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
    return result.status();
  }

  template <typename Run>
  std::invoke_result_t<Run> Intercept(const Call& call, Run run) {
    THIMBLE_RETURN_IF_ERROR(Before(call));
    auto result = run();
    After(call, StatusOf(result));
    return result;
  }

  Driver& base_;
};

}  // namespace thimble
