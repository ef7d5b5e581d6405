// What Thimble needs of a device: fourteen calls. Everything above this file is written against
// them and cannot tell the implementations apart:
//
//   HostDriver   memfd on Linux, as strict as CUDA       (tests, TF's CPU device)
//   CudaDriver   cuMem* of libcuda, opened at run time   (GPUs)
//
// Tests wrap drivers to fail, delay and price their calls (//tests/drivers).
//
// The contract, from cuda.h; the conformance suite tests each rule on every driver:
//   R1  A chunk is mapped whole and from its start (there is no offset to pass).
//   R2  Map only onto reserved addresses where nothing is mapped now.
//   R3  Unmap takes exactly one mapping, never a part and never two.
//   R4  A new mapping has no access until SetAccess, which needs a fully mapped range.
//   R5  Addresses and sizes are positive multiples of granularity.
//   R6  Release takes exactly what Reserve gave, with nothing mapped in it.
//   R7  A chunk may be destroyed while mapped: its bytes live until the last Unmap.
//   R8  Whoever imported a chunk counts as a mapping of it.
//
//   Which address may go to which call:
//                       Map      SetAccess   Unmap   Release   use
//     just reserved     yes      no          no      yes       no
//     mapped            no       yes         yes     no        no
//     mapped + access   no       yes         yes     no        yes
//
// A call that fails changes nothing. Errors: kResourceExhausted when the device, the machine or the
// process has no more to give; kInvalidArgument when the caller broke a rule; kUnavailable when the
// device is gone. Drivers are thread-safe.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/base/bytes.h"
#include "allocator/base/ids.h"

namespace thimble {

// Constant facts about a device, read once when the driver is made.
struct DriverProperties {
  std::string name;       // "host", "NVIDIA A100-SXM4-80GB"
  Bytes granularity = 0;  // a power of two; 2 MiB on today's GPUs
  Bytes total_bytes = 0;  // of the device
};

struct MemoryInfo {
  Bytes free_bytes = 0;
  Bytes total_bytes = 0;
};

enum class CopyDirection : std::uint8_t { kToDevice, kToHost };

class Driver {
 public:
  virtual ~Driver() = default;

  virtual const DriverProperties& properties() const = 0;

  // Addresses. `alignment` is a power of two, at least granularity.
  virtual absl::StatusOr<Address> Reserve(Bytes bytes, Bytes alignment) = 0;
  virtual absl::Status Release(Address address, Bytes bytes) = 0;

  // Physical chunks.
  virtual absl::StatusOr<ChunkHandle> Create(Bytes bytes) = 0;
  virtual absl::Status Destroy(ChunkHandle chunk) = 0;

  // Mappings. `bytes` must be the size of the chunk that is mapped at `address`.
  virtual absl::Status Map(Address address, Bytes bytes, ChunkHandle chunk) = 0;
  virtual absl::Status Unmap(Address address, Bytes bytes) = 0;

  // Lets the device (and the peers it was made with) read and write a fully mapped range. One call
  // may cover many mappings.
  virtual absl::Status SetAccess(Address address, Bytes bytes) = 0;

  // Over when it returns. It is made by an engine of its own for each direction, beside the work in
  // all streams and in no order with it: whoever used the bytes last must be passed.
  virtual absl::Status Copy(Address device, void* host, Bytes bytes, CopyDirection direction) = 0;

  // Host memory, whole pages, that copies will be made from and to: they are several times faster
  // then. No byte may be pinned twice; Unpin takes the address that was pinned, before the memory
  // goes.
  virtual absl::Status PinHost(void* host, Bytes bytes) = 0;
  virtual absl::Status UnpinHost(void* host) = 0;

  // The frontier of a stream: Record names the point behind all work submitted so far, Passed asks
  // without waiting whether the device is beyond it, Wait blocks until it is.
  virtual absl::StatusOr<StreamSeq> Record(StreamId stream) = 0;
  virtual absl::StatusOr<bool> Passed(StreamId stream, StreamSeq point) = 0;
  virtual absl::Status Wait(StreamId stream, StreamSeq point) = 0;

  virtual absl::StatusOr<MemoryInfo> GetMemoryInfo() = 0;

  // The process is about to fork (fork.h): a child that can use this device's memory finds `host`
  // at `device`.
  virtual void LeaveToChild(Address /*device*/, const void* /*host*/, Bytes /*bytes*/) {}
};

}  // namespace thimble
