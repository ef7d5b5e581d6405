// Writes one line per call to another driver: what was asked, what came back. For looking at a
// failing test, and for tests of the exact sequence of calls.
//
//   Reserve(bytes=4194304, alignment=2097152) = 0x7f0000000000
//   Map(address=0x7f0000000000, bytes=2097152, chunk=7) = OK
//   Create(bytes=1) = INVALID_ARGUMENT: R5: 1 bytes are not a positive multiple of 4096
//
// The line is written when the call has returned, on the calling thread and under no lock: with
// several threads the order of lines is not the order of calls, and the sink must be thread-safe.
#pragma once

#include <functional>
#include <string>

#include "allocator/driver/forwarding_driver.h"

namespace thimble {

class TraceDriver : public ForwardingDriver {
 public:
  using Sink = std::function<void(const std::string& line)>;  // no newline at the end

  // `base` must outlive this driver.
  TraceDriver(Driver& base, Sink sink) : ForwardingDriver(base), sink_(std::move(sink)) {}

  absl::StatusOr<Address> Reserve(Bytes bytes, Bytes alignment) override;
  absl::Status Release(Address address, Bytes bytes) override;
  absl::StatusOr<ChunkHandle> Create(Bytes bytes) override;
  absl::Status Destroy(ChunkHandle chunk) override;
  absl::Status Map(Address address, Bytes bytes, ChunkHandle chunk) override;
  absl::Status Unmap(Address address, Bytes bytes) override;
  absl::Status SetAccess(Address address, Bytes bytes) override;
  absl::Status Copy(Address device, void* host, Bytes bytes, CopyDirection direction) override;
  absl::Status PinHost(void* host, Bytes bytes) override;
  absl::Status UnpinHost(void* host) override;
  absl::StatusOr<StreamSeq> Record(StreamId stream) override;
  absl::StatusOr<bool> Passed(StreamId stream, StreamSeq point) override;
  absl::Status Wait(StreamId stream, StreamSeq point) override;
  absl::StatusOr<MemoryInfo> GetMemoryInfo() override;

 private:
  const Sink sink_;
};

}  // namespace thimble
