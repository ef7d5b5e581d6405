// Base of the drivers that wrap another one: forwards everything. A subclass overrides what it is
// about and calls base() for the rest.
//
// A subclass with a lock never holds it while it calls base(): both locks have rank kDriver.
#pragma once

#include "allocator/driver/driver.h"

namespace thimble {

class ForwardingDriver : public Driver {
 public:
  const DriverProperties& properties() const override { return base_.properties(); }

  absl::StatusOr<Address> Reserve(Bytes bytes, Bytes alignment) override {
    return base_.Reserve(bytes, alignment);
  }
  absl::Status Release(Address address, Bytes bytes) override {
    return base_.Release(address, bytes);
  }
  absl::StatusOr<ChunkHandle> Create(Bytes bytes) override { return base_.Create(bytes); }
  absl::Status Destroy(ChunkHandle chunk) override { return base_.Destroy(chunk); }
  absl::Status Map(Address address, Bytes bytes, ChunkHandle chunk) override {
    return base_.Map(address, bytes, chunk);
  }
  absl::Status Unmap(Address address, Bytes bytes) override { return base_.Unmap(address, bytes); }
  absl::Status SetAccess(Address address, Bytes bytes) override {
    return base_.SetAccess(address, bytes);
  }
  absl::Status Copy(Address device, void* host, Bytes bytes, CopyDirection direction) override {
    return base_.Copy(device, host, bytes, direction);
  }
  absl::Status PinHost(void* host, Bytes bytes) override { return base_.PinHost(host, bytes); }
  absl::Status UnpinHost(void* host) override { return base_.UnpinHost(host); }
  absl::StatusOr<StreamSeq> Record(StreamId stream) override { return base_.Record(stream); }
  absl::StatusOr<bool> Passed(StreamId stream, StreamSeq point) override {
    return base_.Passed(stream, point);
  }
  absl::Status Wait(StreamId stream, StreamSeq point) override { return base_.Wait(stream, point); }
  absl::StatusOr<MemoryInfo> GetMemoryInfo() override { return base_.GetMemoryInfo(); }
  void LeaveToChild(Address device, const void* host, Bytes bytes) override {
    base_.LeaveToChild(device, host, bytes);
  }
  EventSink* listener() override { return base_.listener(); }

 protected:
  // `base` must outlive this driver.
  explicit ForwardingDriver(Driver& base) : base_(base) {}

  Driver& base() { return base_; }

 private:
  Driver& base_;
};

}  // namespace thimble
